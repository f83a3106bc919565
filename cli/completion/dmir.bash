# Completion of dmir in bash: eval "$(dmir completion bash)"
_dmir() {
  local line
  COMPREPLY=()
  local words=("${COMP_WORDS[@]:1:COMP_CWORD}")
  while IFS= read -r line; do
    COMPREPLY+=("${line%%$'\t'*}")
  done < <("${COMP_WORDS[0]}" complete -- "${words[@]//\\/}" 2>/dev/null)
  if [[ -e ${COMPREPLY[0]-} ]]; then
    compopt -o filenames 2>/dev/null # quotes names, and a folder takes no space
  fi
}
complete -F _dmir dmir
