// Command words lists the old words that are still in the repository: in the names that Go code
// declares, in comments and messages, in documentation, in scripts and in the pages of the
// dashboard. docs/GLOSSARY.md has the word that replaces each. "make words" runs it.
//
//	words [-list] [-check] [DIRECTORY]
//
// It prints how often each old word occurs. With -list it prints every finding as FILE:LINE. With
// -check it does so too, and ends with exit code 1 if there is a finding.
//
//	old.txt     the old words, and what to write instead
//	kept.txt    names of the API, the database and other standards, which keep their spelling
//	lists.go    reads both
//	scan.go     finds old words in files
package main
