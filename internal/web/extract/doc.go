// Package extract reads a response body for a crawler: links, the page's directives about indexing
// and following, its title and language, and what rules of modules select (rule.go).
//
// [HTML] decodes a body to UTF-8 only if that is necessary (charset.go) and builds a tree from its
// tokens (tree.go, starttag.go, foreign.go, traits.go). The tree contains only what links need, or
// everything. goquery selects the elements with links and directives (select.go), and a collector
// resolves the references (collect.go). A walk over the tree gathers the text (walk.go, prose.go).
//
// The tree of a hostile document could be hundreds of times larger than its bytes, or take a time
// that grows with their square. So nodes and depth are bounded, and each token takes a bounded
// number of steps.
//
// Whatever a body holds, the time and the memory for it grow linearly with its size.
// families_test.go has a list of texts that test this, and soak_test.go counts the
// statements that each of them executes, those of libraries included. A new parser
// belongs in that list.
package extract
