// Package spool holds byte sequences that came from the network, such as the
// bodies of responses, without holding all of them in memory.
//
// A [Writer] gathers bytes; its [Content] is then read as often as needed and
// closed. A content stays in memory up to [Options.Above] bytes, and as long as
// the contents of the [Pool] together stay below [Options.Budget]. Whatever goes
// beyond either continues in a file without a name. No content waits for memory, so
// holding several of them at a time cannot end in a deadlock. The memory of a
// content that is closed serves the next ones.
//
// Memory that others allocate for a moment, such as the windows of decoders, is
// counted by [Pool.Room]. That does wait, but for holders of such room only, who
// wait for nobody.
package spool
