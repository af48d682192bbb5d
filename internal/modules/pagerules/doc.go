//go:build !core

// Package pagerules has the rules of extract.rules: which links of a page count, which of its parts are not read, and
// which values go to the output. They are [extract.Rule]s, made of CSS selectors.
package pagerules
