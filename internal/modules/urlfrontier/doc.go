// Package urlfrontier speaks the language of URLFrontier, the field's protocol between a frontier and
// crawlers: it reads and writes the JSON lines of its client's commands DumpURLs and PutURLs. The
// messages are in package proto below it.
package urlfrontier
