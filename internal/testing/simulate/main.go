package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// Result is the result of one policy on one web, seed by seed.
type Result struct {
	Web    string  `json:"web"`
	Budget float64 `json:"budget"`
	Policy string  `json:"policy"`
	First  uint64  `json:"first_seed"`
	Seeds  []Score `json:"seeds"` // of the first seed and those that follow it
}

// Results are the results of all runs, as stored in the file that the tables and drawings are made
// from.
type Results struct {
	Command string   `json:"command"`
	Results []Result `json:"results"`
}

// Seeds are the seeds of the invented webs: the first and the last.
type Seeds [2]uint64

// String returns the form of the flag.
func (s *Seeds) String() string { return fmt.Sprintf("%d-%d", s[0], s[1]) }

// Set implements flag.Value.
func (s *Seeds) Set(text string) error {
	var got Seeds
	if n, err := fmt.Sscanf(text, "%d-%d", &got[0], &got[1]); n != 2 || err != nil || got[1] < got[0] ||
		got.String() != text {
		return fmt.Errorf("%q is not a range of seeds such as 1-6", text)
	}
	*s = got
	return nil
}

func (s *Seeds) count() int { return int(s[1] - s[0] + 1) }

// budgets are the recrawls a day.
var budgets = []float64{100, 300}

// resultsFile is the file of the results under the directory of the documentation.
const resultsFile = "freshness/results.json"

func main() {
	seeds := Seeds{101, 106}
	docs := flag.String("docs", "docs", "directory of the documentation")
	flag.Var(&seeds, "seeds", "first and last `seed` of the invented webs")
	web := flag.String("web", "", "run this web only, and keep the existing results of the others")
	parallel := flag.Int("parallel", 2, "runs at a time")
	draw := flag.Bool("draw", false, "do not run; make tables and drawings of the existing results")
	flag.Parse()
	if err := do(*docs, seeds, *web, *parallel, *draw); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func do(docs string, seeds Seeds, web string, parallel int, draw bool) error {
	path := filepath.Join(docs, filepath.FromSlash(resultsFile))
	r := Results{Command: fmt.Sprintf("go run ./internal/testing/simulate -seeds %s", &seeds)}
	if web != "" && !slices.ContainsFunc(webs, func(w kindOfWeb) bool { return w.name == web }) {
		return fmt.Errorf("there is no web %q", web)
	}
	if draw || web != "" {
		kept, err := readResults(path)
		if err != nil {
			return err
		}
		if draw {
			return write(docs, kept)
		}
		r.Results = slices.DeleteFunc(kept.Results, func(x Result) bool { return x.Web == web })
	}
	if err := r.run(web, policies(), seeds, parallel, warmUp, counts); err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, append(encoded, '\n'), 0o644); err != nil {
		return err
	}
	return write(docs, r)
}

func readResults(path string) (r Results, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// run runs policies on one web, or on all webs if only is empty, for a number of days that do not
// count and of days that do.
func (r *Results) run(only string, policies []policy, seeds Seeds, parallel, warmUp, counts int) error {
	var wait sync.WaitGroup
	var lock sync.Mutex
	var failed error
	slots := make(chan struct{}, parallel)
	for which, w := range webs {
		if only != "" && only != w.name {
			continue
		}
		for _, budget := range budgets {
			for _, p := range policies {
				to := make([]Score, seeds.count())
				r.Results = append(r.Results, Result{Web: w.name, Budget: budget, Policy: p.Name, First: seeds[0],
					Seeds: to})
				for i := range to {
					seed := seeds[0] + uint64(i)
					slots <- struct{}{}
					wait.Go(func() {
						defer func() { <-slots }()
						s, err := run(which, seed, p, budget, warmUp, counts)
						to[i] = s
						lock.Lock()
						defer lock.Unlock()
						if err != nil && failed == nil {
							failed = fmt.Errorf("%s, %s at %g a day, seed %d: %w", p.Name, w.name, budget, seed, err)
						}
						fmt.Printf("%-20s %3g a day, seed %d: %-31s fresh %.3f, penalty %.3f, age %.2f d, %.1f "+
							"visits a day\n",
							w.name, budget, seed, p.Name, s.Freshness, s.Penalty, s.Age, s.Visits)
					})
				}
			}
		}
	}
	wait.Wait()
	return failed
}
