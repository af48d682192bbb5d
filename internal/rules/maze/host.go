package maze

import (
	"slices"
	"strings"
)

// host is what is known of one host.
type host struct {
	seen     filter   // its last links
	before   filter   // those before them; nil: there are none
	inSeen   int      // links in seen
	root     branch   // all of the host
	branches []branch // its directories
	keys     []uint32 // of the branches, which are found by these
	paths    []string // of the branches; "/" for the files at the root
}

// stop has the rest of the host judged without a maze, and by its pages that are like those of a site. It returns the
// stops with the directories of these if the maze is the host.
func (h *host) stop(path string, stops []string) []string {
	paths, branches := h.paths, h.branches
	h.root, h.keys, h.paths, h.branches = h.root.begin(0), nil, nil, nil
	for i, d := range branches {
		if !d.isSite(1) && !d.suspected && d.tries == 0 {
			continue
		}
		of := h.branch(paths[i])
		if *of = d.begin(d.tries); path == "/" {
			stops = append(stops, sitePrefix+paths[i])
		}
	}
	slices.Sort(stops)
	return stops
}

func (h *host) isSuspected() bool {
	return h.root.suspected || slices.ContainsFunc(h.branches, func(b branch) bool { return b.suspected })
}

// find returns the branch of a directory; nil: there is none.
func (h *host) find(path string) *branch {
	if i := slices.Index(h.keys, keyOf(path)); i >= 0 {
		return &h.branches[i]
	}
	return nil
}

// keyOf returns the hash of a path (FNV-1a).
func keyOf(path string) uint32 {
	h := uint32(2166136261)
	for i := range len(path) {
		h = (h ^ uint32(path[i])) * 16777619
	}
	return h
}

// branch returns the branch of a directory. If there are too many, it takes the place of one with a single page; if
// there is none, it is one of no account.
func (h *host) branch(path string) *branch {
	if b := h.find(path); b != nil {
		return b
	}
	if len(h.paths) >= mostInHost {
		i := slices.IndexFunc(h.branches, func(d branch) bool { return !d.suspected && d.like+d.other < 2 })
		if i < 0 {
			return new(branch)
		}
		h.keys, h.paths = slices.Delete(h.keys, i, i+1), slices.Delete(h.paths, i, i+1)
		h.branches = slices.Delete(h.branches, i, i+1)
	}
	h.keys, h.paths = append(h.keys, keyOf(path)), append(h.paths, strings.Clone(path))
	h.branches = append(h.branches, branch{})
	return &h.branches[len(h.branches)-1]
}
