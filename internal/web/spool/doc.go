// Package spool holds byte sequences from the network, such as the bodies of responses, without
// holding all of them in memory.
//
// A [Writer] collects bytes. Its [Content] is then read as often as needed and closed. A content
// stays in memory up to [Options.Above] bytes, and as long as the contents of the [Pool] together
// stay below [Options.Budget]. Beyond either bound it continues in a file without a name. No
// content waits for memory, so holding several of them cannot end in a deadlock. The memory of a
// closed content is used for later ones.
//
// [Pool.Reserve] counts memory that others allocate for a moment, such as the windows of decoders. It
// waits only for other holders of such room, who wait for nobody.
package spool
