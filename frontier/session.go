package frontier

import "strings"

// SessionNames returns the parameters that carry session ids on common platforms, in lower case. A
// name that ends in a star stands for all names with that prefix.
func SessionNames() []string {
	return []string{
		"jsessionid", "phpsessid", "aspsessionid*", "asp.net_sessionid", "sessionid", "session_id", "sid", "cfid",
		"cftoken", "zenid", "oscsid", "osccsid", "s_id",
	}
}

// Sessions finds session ids in URLs. It is immutable; any goroutine may use it.
type Sessions struct {
	names    map[string]struct{}
	prefixes []string
}

// NewSessions returns Sessions for parameters of the given names.
func NewSessions(names []string) *Sessions {
	s := &Sessions{names: make(map[string]struct{}, len(names))}
	for _, name := range names {
		if prefix, ok := strings.CutSuffix(strings.ToLower(name), "*"); ok {
			s.prefixes = append(s.prefixes, prefix)
		} else {
			s.names[strings.ToLower(name)] = struct{}{}
		}
	}
	return s
}

// Strip returns a request URI without its session ids, and whether it had any. It allocates nothing
// if it had none.
func (s *Sessions) Strip(uri string) (string, bool) {
	if len(s.names)+len(s.prefixes) == 0 || strings.IndexByte(uri, '=') < 0 {
		return uri, false
	}
	path, query, hasQuery := strings.Cut(uri, "?")
	stripped, inPath := s.stripPath(path)
	kept, inQuery := query, false
	if hasQuery {
		kept, inQuery = s.stripQuery(query)
	}
	switch {
	case !inPath && !inQuery:
		return uri, false
	case kept == "" && (inQuery || !hasQuery):
		return stripped, true
	}
	return stripped + "?" + kept, true
}

// stripPath drops path parameters: /page;jsessionid=1234. Its time is linear.
func (s *Sessions) stripPath(path string) (string, bool) {
	var kept strings.Builder
	from := 0 // what is before it is in kept or dropped
	for at := strings.IndexByte(path, ';'); 0 <= at && at < len(path); {
		end := at + 1
		for end < len(path) && path[end] != ';' && path[end] != '/' {
			end++
		}
		if path[at] == ';' && s.isSession(path[at+1:end]) {
			kept.WriteString(path[from:at])
			from = end
		}
		at = end
	}
	if from == 0 {
		return path, false
	}
	kept.WriteString(path[from:])
	return kept.String(), true
}

// stripQuery drops parameters of a query.
func (s *Sessions) stripQuery(query string) (string, bool) {
	found := false
	for part := range strings.SplitSeq(query, "&") {
		found = found || s.isSession(part)
	}
	if !found {
		return query, false
	}
	var kept []string
	for part := range strings.SplitSeq(query, "&") {
		if !s.isSession(part) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, "&"), true
}

func (s *Sessions) isSession(parameter string) bool {
	name, value, ok := strings.Cut(parameter, "=")
	if !ok || value == "" {
		return false
	}
	name = strings.ToLower(name)
	if _, known := s.names[name]; known {
		return true
	}
	for _, prefix := range s.prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
