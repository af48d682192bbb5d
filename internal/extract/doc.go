// Package extract reads what a crawler needs from a response body: links, the
// page's own directives about indexing and following, its title and its language,
// and the fields that rules ask for.
//
// [HTML] decodes a body to UTF-8 only where it has to (charset.go) and builds a tree
// from its tokens (tree.go, construct.go, foreign.go, traits.go), which has either
// what links need or everything. The elements that say something are selected by
// goquery (select.go) and given to a collector (collect.go), which resolves the
// references. The text is gathered in a walk over the tree (walk.go, prose.go). A
// rule (rules.go, selector.go) leaves out links and parts, and takes fields.
//
// The tree of a hostile document could be hundreds of times larger than its bytes, or
// take a time that grows with their square. So nodes and depth are bounded, and each
// token takes a bounded number of steps.
//
// Whatever a body holds, the time and the memory for it grow linearly with its size.
// families_test.go has a list of texts that test this, and soak_test.go counts the
// statements that each of them executes, those of libraries included. A new parser
// belongs in that list.
package extract
