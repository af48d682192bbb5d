package config

// longestSuggestible bounds the work of a suggestion; no setting's name comes near it.
const longestSuggestible = 64

// tolerance is how many edits may separate a misspelt key from the one that was meant.
func tolerance(key string) int {
	switch {
	case len(key) > longestSuggestible:
		return -1
	case len(key) <= 4:
		return 1
	case len(key) <= 8:
		return 2
	default:
		return 3
	}
}

// Like reports whether a word is a misspelling of another one, or that word itself.
func Like(word, other string) bool { return distance(word, other) <= tolerance(word) }

// distance counts the insertions, deletions, substitutions and swaps of neighbours that turn a into b
// (optimal string alignment), in bytes and without regard to ASCII case. Strings that are too long
// are as far apart as can be.
func distance(a, b string) int {
	if len(a) > longestSuggestible || len(b) > longestSuggestible {
		return longestSuggestible
	}
	var before, last, row [longestSuggestible + 1]int
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			x, y := lower(a[i-1]), lower(b[j-1])
			cost := 1
			if x == y {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x == lower(b[j-2]) && lower(a[i-2]) == y {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
