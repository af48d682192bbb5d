package consent

// Effective are the preferences that hold for a page, and the statements that they come from.
type Effective struct {
	Preferences Preferences
	// By is the index of the statement that decides a category, or -1. A statement about a wider
	// category may decide.
	By [categories]int
}

// Combine returns the effective preferences of all statements about a page: for each category the
// strictest counts, and of several that say the same the first decides (draft-ietf-aipref-vocab,
// section 5.1). Of statements of the TDM Reservation Protocol only the latest source counts, because
// that protocol says so.
func Combine(list []Statement) Effective {
	var e Effective
	for c := range e.By {
		e.By[c] = -1
	}
	latest := SourceRobots
	for _, s := range list {
		if s.Preferences[Mining] != Unknown {
			latest = max(latest, s.Source)
		}
	}
	for i, s := range list {
		p := s.Preferences
		if s.Source < latest {
			p[Mining] = Unknown
		}
		combined := e.Preferences.strictest(p.implied())
		for c := range combined {
			if combined[c] != e.Preferences[c] {
				e.By[c] = i
			}
		}
		e.Preferences = combined
	}
	return e
}
