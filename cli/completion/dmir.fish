# Completion of dmir in fish: ~/.config/fish/completions/dmir.fish
function __dmir_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program complete -- $words (commandline -ct) 2>/dev/null
end
complete -c dmir -f -a '(__dmir_complete)'
