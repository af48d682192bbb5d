package membership

import (
	"slices"
	"strings"
	"unicode"

	"github.com/nats-io/nats.go"

	"github.com/amble-crawler/amble/internal/cluster"
)

// noteHeader is the header of a heartbeat with a note: a text for people about its node.
const noteHeader = "Amble-Note"

// Bounds of the notes of a node.
const (
	maxNotes = 8
	maxNote  = 512 // bytes
)

// The notes of the node about itself.
const noteDrained = "drained"

// notesOf returns the notes of a message, which anybody may have written.
func notesOf(h nats.Header) []string {
	notes := h[noteHeader]
	notes = slices.Clone(notes[:min(len(notes), maxNotes)])
	for i := range notes {
		notes[i] = plainNote(notes[i])
	}
	return notes
}

// plainNote returns a text on one line that a terminal and a header can take.
func plainNote(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text[:min(len(text), maxNote)])
	return strings.ToValidUTF8(strings.TrimSpace(text), "")
}

// Note has the heartbeats say something about this node, for [ReadSurvey]: one text about each thing. An empty
// text removes it.
func (n *Node) Note(about, text string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.note(about, text)
}

// note is Note. n.mu is held.
func (n *Node) note(about, text string) {
	n.notes = slices.DeleteFunc(n.notes, func(o note) bool { return o.about == about })
	if text != "" {
		n.notes = append(n.notes, note{about, plainNote(text)})
	}
}

// note is a text about a thing.
type note struct{ about, text string }

// noted returns the notes of the next heartbeat.
func (n *Node) noted() (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.notes[:min(len(n.notes), maxNotes)] {
		texts = append(texts, o.text)
	}
	return texts
}

// Drain makes the node hand over its shards and take no others. It stays a member.
func (n *Node) Drain() { n.drain("drained by a command") }

// drain drains the node until Undrain.
func (n *Node) drain(why string) {
	n.do(func(m *cluster.Node, now cluster.Instant) {
		n.drained = true
		n.note(noteDrained, why)
		m.Drain(now, false)
	})
}

// Undrain makes a node take shards again that Drain, Suspend, or an engine that failed, has drained.
func (n *Node) Undrain() {
	n.do(func(m *cluster.Node, now cluster.Instant) {
		n.drained, n.suspended = false, false
		n.note(noteDrained, "")
		m.Undrain(now)
	})
}

// Suspend drains the node until Resume, and says why.
func (n *Node) Suspend(why string) {
	n.do(func(m *cluster.Node, now cluster.Instant) {
		if n.suspended = true; !n.drained {
			n.note(noteDrained, why)
		}
		m.Drain(now, false)
	})
}

// Resume ends Suspend. A node that is drained for another reason stays drained.
func (n *Node) Resume() {
	n.do(func(m *cluster.Node, now cluster.Instant) {
		if !n.suspended {
			return
		}
		if n.suspended = false; !n.drained {
			n.note(noteDrained, "")
			m.Undrain(now)
		}
	})
}

// Suspended reports whether the node is suspended.
func (n *Node) Suspended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.suspended
}
