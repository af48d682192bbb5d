package robots

// pairs is the hashed set of pairs of neighbouring octets of a URL. A pattern with a star names two
// pairs that every match must hold, so that of thousands of patterns only a few are tried.
type pairs [4096 / 64]uint64

// fewWildcards is the number of patterns up to which trying them is faster than collecting the
// pairs of the URL.
const fewWildcards = 8

// anyPair is in every set: it is the probe of a pattern without two neighbouring octets.
const anyPair = 0

// pairOf returns the index of a pair in the set.
func pairOf(a, b byte) uint16 {
	return uint16((uint32(a)<<8 | uint32(b)) * 0x9E3779B1 >> 20)
}

func (p *pairs) addAll(uri []byte) {
	p[0] |= 1 << anyPair
	for i := 1; i < len(uri); i++ {
		h := pairOf(uri[i-1], uri[i])
		p[h>>6] |= 1 << (h & 63)
	}
}

// has reports whether both pairs may be in the set.
func (p *pairs) has(probe [2]uint16) bool {
	a, b := probe[0]&4095, probe[1]&4095
	return p[a>>6]>>(a&63)&(p[b>>6]>>(b&63))&1 != 0
}

// probes chooses the pairs of a pattern's probe: the first and the last of its longest piece
// between stars.
func probes(pattern []byte) [2]uint16 {
	var piece []byte
	for start := 0; start < len(pattern); {
		end := start
		for end < len(pattern) && pattern[end] != '*' {
			end++
		}
		if end-start >= len(piece) {
			piece = pattern[start:end]
		}
		start = end + 1
	}
	n := len(piece)
	if n < 2 {
		return [2]uint16{anyPair, anyPair}
	}
	return [2]uint16{pairOf(piece[0], piece[1]), pairOf(piece[n-2], piece[n-1])}
}
