// Command simulate shows what a policy of renewals is worth. It lets the scheduler of a real crawl (packages
// frontier, politeness, robots and revisit) run for two years of virtual time on webs that are made up, and compares
// what its copies are like with what other policies make of the same web, budget and limits. "make sim" runs it;
// docs/FRESHNESS.md holds what came of it.
//
//	web.go       pages and when they change
//	policy.go    the policies that are compared, those among them that know what no crawler can know
//	crawl.go     the loop around the frontier: time, answers, commits
//	store.go     a store in memory
//	score.go     freshness, missed changes, age
//	report.go    tables and drawings of the results
package main
