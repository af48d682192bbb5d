package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// format writes a value as it can be written in the file.
func format(value any) string {
	switch v := value.(type) {
	case time.Duration:
		return formatDuration(v)
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case []string:
		return "[" + strings.Join(v, ", ") + "]"
	default:
		if list := reflect.ValueOf(v); list.Kind() == reflect.Slice {
			return formatItems(list)
		}
		return fmt.Sprint(v)
	}
}

// formatDuration leaves out the zero units that time.Duration.String appends: 1h, not 1h0m0s.
func formatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
