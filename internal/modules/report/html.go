//go:build !core

package report

import (
	_ "embed"
	"html/template"
	"io"
	"strings"

	"github.com/amble-crawler/amble/internal/console"
)

//go:embed page.html
var pageText string

// writeHTML writes one page without a script that needs nothing else. Whatever comes from the web is escaped.
func (r *Summary) writeHTML(w io.Writer) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"n": console.Grouped[uint64], "size": console.Size[uint64], "sorted": sorted, "cause": CauseText,
		"why": (*Link).why, "pages": (*Link).pages, "fate": (*Seed).fate, "left": (*HostLeft).why,
		"known": (*Summary).known, "lacks": (*Summary).lacks, "all": countsText,
		"u":       func(n uint32) uint64 { return uint64(n) },
		"more":    func(total uint64, shown int) uint64 { return total - min(total, uint64(shown)) },
		"caused":  func(l *LeftOut) (n uint64) { return l.rows() },
		"counted": counted, "first": func() string { return firstOnly }, "lower": strings.ToLower,
	}).Parse(pageText)
	if err != nil {
		return err
	}
	return t.Execute(w, r)
}

// rows returns the number of hosts and causes.
func (l *LeftOut) rows() (n uint64) {
	for _, c := range l.Causes {
		n += c.Hosts
	}
	return n
}

// bar is a count with its share of the largest one, in percent.
type bar struct {
	Name  string
	N     uint64
	Share int
}

// counted returns counts for bars.
func counted(counts map[string]uint64) (list []bar) {
	var most uint64
	for _, n := range counts {
		most = max(most, n)
	}
	for _, c := range sorted(counts) {
		list = append(list, bar{c.name, c.n, int(100 * c.n / max(most, 1))})
	}
	return list
}
