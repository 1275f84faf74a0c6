package ir

// MatchGlob tells whether the whole of a name fits a pattern, as flags name parameters: * stands for any run of characters, dots and slashes
// included, ? for exactly one, everything else for itself. Only the last * is tried again, so time is linear in the name for each *.
func MatchGlob(pattern, name string) bool {
	p, s := []rune(pattern), []rune(name)
	i, j := 0, 0
	star, mark := -1, 0 // the last star and what it has swallowed up to
	for j < len(s) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == s[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
