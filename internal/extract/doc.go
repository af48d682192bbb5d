// Package extract reads what a crawler needs from a response body: links, the
// page's own wishes about indexing and following, its title and its language.
//
// [HTML] decodes a body to UTF-8 only where it has to (charset.go), has goquery
// parse it, and walks the tree once (walk.go), handing each element to a
// collector (collect.go), which resolves the references. Where a <base> comes
// after references, the document is read a second time.
//
// The tree of a hostile document can be hundreds of times larger than its
// bytes, and documents nested deeper than 512 elements are refused by the
// parser. Both are met by reading the same elements from the token stream
// instead, in linear time and constant space (flat.go): cost.go estimates the
// size of the tree before it is built.
package extract
