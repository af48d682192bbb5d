// Command simulate measures recrawl policies. It runs the scheduler of a real crawl (packages
// frontier, politeness, robots and recrawl) for two years of virtual time on invented webs, and
// compares the freshness of its copies with that of other policies on the same web, budget and
// limits. "make sim" runs it; docs/FRESHNESS.md has the results.
//
//	web.go       pages and when they change
//	policy.go    the policies; some know what no crawler can know
//	crawl.go     the loop around the frontier: time, responses, commits
//	store.go     a store in memory
//	score.go     freshness, missed changes, age
//	report.go    tables and drawings of the results
package main
