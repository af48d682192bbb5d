package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// grouped formats a count with commas: 1,234,567.
func grouped[N int | uint64](n N) string {
	text := strconv.FormatUint(uint64(max(n, 0)), 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// plural formats a count and its noun: 1 page, 2 pages.
func plural[N int | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return grouped(n) + " " + noun + "s"
}

// size formats bytes in the unit that keeps it short: 512 B, 1.6 MiB.
func size[N uint64 | float64](n N) string {
	value, unit := float64(n), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1023.95 {
			break
		}
		value, unit = value/1024, larger
	}
	if unit == "B" {
		return fmt.Sprintf("%.0f B", value)
	}
	return fmt.Sprintf("%.1f %s", value, unit)
}

// span formats a duration by its two largest units: 0s, 14s, 2m 5s, 1h 4m, 3d 2h.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	seconds := int(max(d, 0).Round(time.Second) / time.Second)
	switch d := time.Duration(seconds) * time.Second; {
	case d < time.Minute:
		return fmt.Sprintf("%ds", seconds)
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", seconds/60, seconds%60)
	case d < day:
		return fmt.Sprintf("%dh %dm", seconds/3600, seconds/60%60)
	default:
		return fmt.Sprintf("%dd %dh", seconds/86400, seconds/3600%24)
	}
}

// instantText formats a time for people: the clock time today, otherwise with the date.
func instantText(t, now time.Time) string {
	t = t.Local()
	if y, m, d := now.Local().Date(); t.Year() == y && t.Month() == m && t.Day() == d {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04")
}

// tableRows is how many rows a table aligns together. It buffers no more.
const tableRows = 500

// table writes any number of rows in aligned columns.
type table struct {
	w    io.Writer
	rows [][]string
}

func newTable(w io.Writer, titles ...string) *table {
	return &table{w: w, rows: [][]string{titles}}
}

func (t *table) row(cells ...string) error {
	t.rows = append(t.rows, cells)
	if len(t.rows) < tableRows {
		return nil
	}
	return t.flush()
}

// flush writes the buffered rows.
func (t *table) flush() error {
	var b strings.Builder
	writeTable(&b, t.rows)
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}
