//go:build !core

package auditreport

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amble-crawler/amble/internal/config"
	"github.com/amble-crawler/amble/internal/console"
	"github.com/amble-crawler/amble/internal/modules/audit"
)

// Problem returns an error unless the audit proves that the crawl was polite.
func Problem(r *audit.Report) error {
	var problems []string
	if n := r.Counts.Violations; n > 0 {
		problems = append(problems, console.Plural(n, "violation"))
	}
	if n := len(r.Damaged); n > 0 {
		text := "part of the request log cannot be read, and nothing is proven about it: " +
			Damage(&r.Damaged[0])
		if n > 1 {
			text += fmt.Sprintf("; and %s", console.Plural(n-1, "other part"))
		}
		problems = append(problems, text)
	}
	if problems == nil {
		return nil
	}
	return console.Exit(console.ExitProblem, errors.New(strings.Join(problems, "; ")))
}

// NoRequests explains why there is nothing to audit in data directories.
func NoRequests(c *config.Config, dirs []string, o audit.Options) error {
	where := strings.Join(dirs, ", ")
	switch {
	case c.Audit.MaxSize == 0:
		return console.Exit(console.ExitProblem, fmt.Errorf("no request log is kept: audit.max_size is 0 (%s)",
			c.Source("audit.max_size")))
	case o.Host != "" || !o.Since.IsZero():
		return console.Exit(console.ExitProblem, fmt.Errorf("the request log in %s has no matching request", where))
	}
	return console.Exit(console.ExitProblem,
		fmt.Errorf("there is no request in %s: nothing was crawled with this data_dir yet", where))
}
