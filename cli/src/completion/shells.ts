/**
 * The completion scripts of shells. They pass the words so far to `holdfast complete` as separate arguments, so nothing
 * that was typed is evaluated.
 */
export const shells = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof shells)[number];

const bash = `# holdfast: completion for bash
_holdfast() {
  local -a words
  local cur value
  # Split at spaces only: bash itself also splits at ":" and "=".
  read -r -a words <<< "\${COMP_LINE:0:COMP_POINT}"
  [[ \${COMP_LINE:0:COMP_POINT} == *[[:space:]] ]] && words+=("")
  cur=\${words[\${#words[@]}-1]}
  COMPREPLY=()
  while IFS=$'\\t' read -r value _; do
    [[ $value == "$cur"* ]] && COMPREPLY+=("\${value#"\${cur%"\${cur##*[:=]}"}"}")
  done < <("\${words[0]/#\\~/$HOME}" complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _holdfast holdfast holdfast.js
`;

const zsh = `#compdef holdfast holdfast.js
# holdfast: completion for zsh
_holdfast() {
  local -a described
  local line value
  for line in "\${(@f)$("\${words[1]/#\\~/$HOME}" complete -- "\${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    value=\${line%%$'\\t'*}
    [[ -n $value ]] && described+=("\${value//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#described} )); then
    _describe -t holdfast holdfast described
  else
    _files
  fi
}
if [[ \${funcstack[1]} == _holdfast ]]; then
  _holdfast "$@"
else
  compdef _holdfast holdfast holdfast.js
fi
`;

const fish = `# holdfast: completion for fish
function __holdfast_complete
  set -l before (commandline -opc)
  set -l now (commandline -ct)
  $before[1] complete -- $before[2..-1] "$now" 2>/dev/null
end
for name in holdfast holdfast.js
  complete -c $name -f -a '(__holdfast_complete)'
  complete -c $name -l ca-file -r -F
  complete -c $name -l data -r -F
end
`;

export const completionScripts: Readonly<Record<Shell, string>> = { bash, zsh, fish };
