#compdef dmir
# Completion of dmir in zsh: a file _dmir in a folder of $fpath.
_dmir() {
  local line
  local -a folders values
  for line in "${(@f)$("${words[1]}" complete -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
      '') ;;
      */) folders+=("$line") ;;
      *$'\t'*) values+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
      *) values+=("${line//:/\\:}") ;;
    esac
  done
  (( $#values )) && _describe -V dmir values
  (( $#folders )) && compadd -S '' -- "${folders[@]}"
}
if [[ $funcstack[1] == _dmir ]]; then
  _dmir "$@"
else
  compdef _dmir dmir
fi
