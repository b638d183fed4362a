# Prints the completions of a line in zsh: complete.zsh ROOT LINE. A shell on a pseudo terminal completes it, and lists the
# candidates between two marks.
zmodload zsh/zpty
zpty shell "exec zsh -f -i"
read_until() {
    local text= part
    while [[ $text != *$1* ]]; do zpty -r shell part || break; text+=$part; done
    print -rn -- $text
}
send() { zpty -w shell "$1" }
send "PS1= RPS1= PROMPT_EOL_MARK=; stty -echo; fpath=($1/usr/share/zsh/vendor-completions \$fpath)"
send "autoload -Uz compinit; compinit -u -D; unset zle_bracketed_paste"
# Completion functions add candidates by compadd: it prints them, and adds them too.
send 'compadd() {
    local -a candidates
    local -A _options
    if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\ * ]]; then
        builtin compadd -A candidates "$@"
        print -rl -- "" "${(@)candidates/#/=}"
    fi
    builtin compadd "$@"
}'
send 'marked() { print; print BEGIN-CANDIDATES; zle complete-word; print; print END-CANDIDATES }'
send "zle -C complete-word complete-word _main_complete; zle -N marked; bindkey '^I' marked; print READY\$((1 + 1))"
read_until READY2 >/dev/null
zpty -w -n shell "$2"$'\t'
read_until END-CANDIDATES | tr -d '\r' | sed -n '/BEGIN-CANDIDATES/,/END-CANDIDATES/s/^=//p'
zpty -d shell
