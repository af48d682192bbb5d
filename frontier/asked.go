package frontier

import (
	"github.com/amble-crawler/amble/politeness"
	"github.com/amble-crawler/amble/robots"
)

// setAsked puts in force what the robots.txt files of all the host's origins ask of the pace. While one of them is
// unknown, what was in force before stays in force beside them.
func (f *Frontier) setPace(h *host) {
	a := h.active
	var asked politeness.Asked
	all := true
	for i := range a.queues {
		q := &a.queues[i]
		if !q.known || q.rules == nil {
			all = false
			continue
		}
		asked = asked.Merge(paceOf(q.rules.Pace(), q.Origin()))
	}
	if !all {
		asked = asked.Merge(a.polite.Asked())
	}
	a.polite.SetAsked(asked)
}

// askedBy is what one robots.txt asks for, in the words of politeness.
func paceOf(p robots.Pace, origin uint8) politeness.Asked {
	line := func(n int) politeness.Line { return politeness.Line{Origin: origin, Number: uint32(n)} }
	a := politeness.Asked{Delay: p.Delay, Rate: p.Rate, Line: line(p.Line)}
	for _, r := range p.Rates {
		a.Rates = append(a.Rates, politeness.Rate{Window: window(r.Window), Delay: r.Delay, Line: line(r.Line)})
	}
	for _, v := range p.Visits {
		a.Visits = append(a.Visits, politeness.Visit{Window: window(v.Window), Line: line(v.Line)})
	}
	return a
}

func window(w robots.Window) politeness.Window {
	from, to := w.Minutes()
	return politeness.Window{From: uint16(from), To: uint16(to)}
}
