package robots

// Explanation is a verdict with what led to it.
type Explanation struct {
	Verdict
	Rule      string // the rule as the file spells it, or ""
	Group     string // the name of the group that applies: a token, "*", or "" where none does
	GroupLine int    // of the user-agent line with that name: in the group of the rule, else the first; 0 where none
}

// Explain answers for a request URI and says why. rules must come from f.Rules.
func (f *File) Explain(rules *Rules, requestURI string) Explanation {
	e := Explanation{Verdict: rules.Match(requestURI), Group: rules.Group()}
	if e.Line > 0 {
		e.Rule = f.Text(e.Line)
	}
	if e.Group == "" {
		return e
	}
	for _, g := range f.Groups {
		if line := g.lineOf(e.Group); line != 0 && (e.GroupLine == 0 || line < e.Line) {
			e.GroupLine = line
		}
	}
	return e
}

// lineOf returns the first of the group's user-agent lines with the given name, or 0.
func (g Group) lineOf(name string) int {
	for _, a := range g.Agents {
		value := []byte(a.Value)
		if isGlobal(value) && name == "*" || !isGlobal(value) && name != "*" && names(value, name) {
			return a.Line
		}
	}
	return 0
}
