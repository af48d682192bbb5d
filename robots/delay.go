package robots

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxDelay is the longest delay of a Pace. It only keeps the sum of a time and a delay within what
// a clock can hold.
const MaxDelay = 100 * 365 * 24 * time.Hour

// Pace is the pace of requests that a file demands.
type Pace struct {
	Delay  time.Duration // the largest Crawl-delay, or Request-rate that holds at all hours; at most MaxDelay; 0: none
	Rate   bool          // Delay is that of a Request-rate
	Line   int           // of Delay
	Rates  []TimedRate   // Request-rates that hold at some hours only
	Visits []Visit       // the hours at which the site may be fetched from; none: all
}

// TimedRate is a Request-rate that holds at some hours only: the time from one request to the next.
type TimedRate struct {
	Window Window
	Delay  time.Duration
	Line   int
}

// Visit is a Visit-time.
type Visit struct {
	Window Window
	Line   int
}

// maxTimed is the number of lines with hours that are kept, of each kind. Further Request-rates
// count at all hours and further Visit-times not at all, which is never less polite.
const maxTimed = 8

// delays collects what a file says about the pace of requests.
type delays struct {
	seconds float64 // negative: nothing
	rate    bool
	line    int
	rates   []TimedRate
	visits  []Visit
}

func (d *delays) none() { *d = delays{seconds: -1} }

func (d *delays) add(k key, value []byte, line int) {
	switch k {
	case keyCrawlDelay:
		if seconds, ok := parseDelay(string(value)); ok {
			d.longer(seconds, false, line)
		}
	case keyRequestRate:
		d.addRate(string(value), line)
	case keyVisitTime:
		if w, ok := parseWindow(string(value)); ok && len(d.visits) < maxTimed {
			d.visits = append(d.visits, Visit{w, line})
		}
	}
}

func (d *delays) addRate(value string, line int) {
	rate, ok := parseRate(value)
	switch {
	case !ok:
	case rate.Window != nil && len(d.rates) < maxTimed:
		d.rates = append(d.rates, TimedRate{*rate.Window, toDuration(rate.interval()), line})
	default:
		d.longer(rate.interval(), true, line)
	}
}

func (d *delays) longer(seconds float64, rate bool, line int) {
	if seconds > d.seconds {
		d.seconds, d.rate, d.line = seconds, rate, line
	}
}

// pace returns what was collected, or nil for nothing.
func (d *delays) pace() *Pace {
	if d.seconds < 0 && len(d.rates)+len(d.visits) == 0 {
		return nil
	}
	p := &Pace{Rates: d.rates, Visits: d.visits}
	if d.seconds >= 0 {
		p.Delay, p.Rate, p.Line = toDuration(d.seconds), d.rate, d.line
	}
	return p
}

// toDuration converts seconds to a duration of at most MaxDelay.
func toDuration(seconds float64) time.Duration {
	if seconds >= MaxDelay.Seconds() {
		return MaxDelay
	}
	return time.Duration(math.Ceil(seconds * float64(time.Second)))
}

// RequestRate is the value of a Request-rate line: a number of requests in a number of seconds, at
// some hours or always.
type RequestRate struct {
	Requests int
	Seconds  float64
	Window   *Window // nil: always
}

// interval returns the seconds from one request to the next.
func (r RequestRate) interval() float64 { return r.Seconds / float64(r.Requests) }

// Window is a part of the day in UTC, as four digits each: hour and minute. It may go over
// midnight.
type Window struct{ From, To string }

// Minutes returns both ends as minutes of the day, 0 to 1440.
func (w Window) Minutes() (from, to int) { return minuteOf(w.From), minuteOf(w.To) }

// minuteOf reads the four digits of a Window.
func minuteOf(clock string) int {
	n, _ := strconv.Atoi(clock) // as parseWindow has checked
	return n/100*60 + n%100
}

// parseDelay reads the value of a Crawl-delay line in seconds. A fraction may have a point or a
// comma. A unit and other words may follow: every demand that can be read is obeyed. A value that
// is negative, not finite or no number is invalid.
func parseDelay(s string) (seconds float64, ok bool) {
	seconds, rest, ok := leadingNumber(strings.TrimPrefix(s, "+"))
	if !ok {
		return 0, false
	}
	return seconds * unit(rest), true
}

// leadingNumber reads the decimal number at the start of s.
func leadingNumber(s string) (f float64, rest string, ok bool) {
	n, digits, point := 0, 0, -1
	for ; n < len(s); n++ {
		c := s[n]
		if c >= '0' && c <= '9' {
			digits++
		} else if (c == '.' || c == ',') && point < 0 {
			point = n
		} else {
			break
		}
	}
	if digits == 0 || strings.HasPrefix(s, "0x") || strings.HasPrefix(s, "0X") {
		return 0, s, false
	}
	n += exponent(s[n:])
	number := s[:n]
	if point >= 0 {
		number = number[:point] + "." + number[point+1:]
	}
	f, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, s, false
	}
	return f, s[n:], true
}

// exponent returns the length of the decimal exponent at the start of s, or 0.
func exponent(s string) int {
	if s == "" || s[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if n < len(s) && (s[n] == '+' || s[n] == '-') {
		n++
	}
	start := n
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	if n == start {
		return 0
	}
	return n
}

// unit returns the seconds in the unit at the start of s, and 1 if there is no unit.
func unit(s string) float64 {
	s = strings.TrimLeft(s, " \t")
	n := 0
	for n < len(s) && lower(s[n]) >= 'a' && lower(s[n]) <= 'z' {
		n++
	}
	switch strings.ToLower(s[:n]) {
	case "ms", "msec", "msecs", "millisecond", "milliseconds":
		return 0.001
	case "m", "min", "mins", "minute", "minutes":
		return 60
	case "h", "hr", "hrs", "hour", "hours":
		return 3600
	case "d", "day", "days":
		return 86400
	}
	return 1
}

// parseRate reads the value of a Request-rate line: "1/10", "1/10s", "30/5m 0600-0845".
func parseRate(s string) (RequestRate, bool) {
	before, after, found := strings.Cut(s, "/")
	requests, err := strconv.Atoi(strings.TrimSpace(before))
	if !found || err != nil || requests <= 0 {
		return RequestRate{}, false
	}
	seconds, rest, ok := leadingNumber(strings.TrimSpace(after))
	if !ok || seconds <= 0 {
		return RequestRate{}, false
	}
	rate := RequestRate{Requests: requests, Seconds: seconds * unit(rest)}
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		if w, good := parseWindow(rest[i:]); good {
			rate.Window = &w
		}
	}
	return rate, true
}

// parseWindow reads "0600-0845", with or without blanks around the hyphen.
func parseWindow(s string) (Window, bool) {
	from, to, found := strings.Cut(s, "-")
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	if !found || !isClock(from) || !isClock(to) {
		return Window{}, false
	}
	return Window{from, to}, true
}

func isClock(s string) bool {
	if len(s) != 4 {
		return false
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n/100 <= 24 && n%100 < 60 && n <= 2400
}
