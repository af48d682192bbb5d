// Package extract reads what a crawler needs from a response body: links, the
// page's own directives about indexing and following, its title and its language.
//
// [HTML] decodes a body to UTF-8 only where it has to (charset.go), builds the tree
// for goquery (htmltree), and walks it once (walk.go), handing each element to a
// collector (collect.go), which resolves the references. If a <base> comes after
// references, the document is read a second time.
//
// The tree of a hostile document can be hundreds of times larger than its bytes, or
// take a time that grows with their square. So its nodes, its depth and its work are
// counted while it is built. A document that exceeds a bound is read flat: the same
// elements are taken from the token stream instead, in linear time and constant
// space (flat.go).
//
// Whatever a body holds, the time and the memory for it grow linearly with its size.
// families_test.go has a list of texts that test this, and soak_test.go counts the
// statements that each of them executes, those of libraries included. A new parser
// belongs in that list.
package extract
