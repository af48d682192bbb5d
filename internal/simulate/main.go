package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
)

// Result is what one policy came to on one web, over its seeds.
type Result struct {
	Web    string  `json:"web"`
	Budget float64 `json:"budget"`
	Policy string  `json:"policy"`
	Seeds  []Score `json:"seeds"`
}

// Results are those of all runs, as they stand in the file that the tables and drawings are made of.
type Results struct {
	Command string   `json:"command"`
	Seeds   int      `json:"seeds"` // of the first web; the others have one
	Results []Result `json:"results"`
}

// budgets are the renewals a day.
var budgets = []float64{100, 300}

// resultsFile is where the results stand under the directory of the documentation.
const resultsFile = "freshness/results.json"

func main() {
	docs := flag.String("docs", "docs", "directory of the documentation")
	seeds := flag.Int("seeds", 2, "webs that are made up of the first kind; of the others one each")
	parallel := flag.Int("parallel", 2, "runs at a time")
	draw := flag.Bool("draw", false, "do not run, only make tables and drawings of the results that are there")
	flag.Parse()
	if err := do(*docs, *seeds, *parallel, *draw); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func do(docs string, seeds, parallel int, draw bool) error {
	path := filepath.Join(docs, filepath.FromSlash(resultsFile))
	if draw {
		r, err := readResults(path)
		if err != nil {
			return err
		}
		return write(docs, r)
	}
	r, err := runAll(seeds, parallel)
	if err != nil {
		return err
	}
	r.Command = fmt.Sprintf("go run ./internal/simulate -seeds %d", seeds)
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

// runAll runs every policy on every web.
func runAll(seeds, parallel int) (Results, error) {
	r := Results{Seeds: seeds}
	var wait sync.WaitGroup
	var lock sync.Mutex
	var failed error
	slots := make(chan struct{}, parallel)
	for which, w := range webs {
		n := 1
		if which == 0 {
			n = seeds
		}
		for _, budget := range budgets {
			for _, p := range policies() {
				r.Results = append(r.Results, Result{Web: w.name, Budget: budget, Policy: p.Name, Seeds: make([]Score, n)})
				to := r.Results[len(r.Results)-1].Seeds
				for seed := range n {
					slots <- struct{}{}
					wait.Go(func() {
						defer func() { <-slots }()
						s, err := run(which, uint64(seed+1), p, budget, warmUp, counts)
						to[seed] = s
						lock.Lock()
						defer lock.Unlock()
						if err != nil && failed == nil {
							failed = fmt.Errorf("%s, %s at %g a day, seed %d: %w", p.Name, w.name, budget, seed+1, err)
						}
						fmt.Printf("%-20s %3g a day, seed %d: %-31s fresh %.3f, penalty %.3f, age %.2f d, %.1f visits a day\n",
							w.name, budget, seed+1, p.Name, s.Freshness, s.Penalty, s.Age, s.Visits)
					})
				}
			}
		}
	}
	wait.Wait()
	return r, failed
}
