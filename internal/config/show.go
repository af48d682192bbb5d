package config

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Source returns the source of the value in force of a setting, such as politeness.delay.
func (c *Config) Source(key string) Source { return c.origins[key].Source }

// Description describes a setting for help texts and completions.
type Description struct {
	Key     string // such as politeness.delay
	Default string // as in the file
}

// Describe lists every setting in the order of the config file.
func Describe() []Description {
	defaults := Default()
	var list []Description
	for _, s := range settings() {
		text := format(s.value(&defaults))
		if text == "" {
			text = `""`
		}
		list = append(list, Description{Key: s.key, Default: text})
	}
	return list
}

// Show writes every setting in force as a config file, with the source of each after it. Paths are
// the resolved ones. Secrets are hidden.
func (c *Config) Show(w io.Writer) error {
	var b bytes.Buffer
	section := ""
	for _, s := range settings() {
		if s.section() != section {
			section = s.section()
			writeSection(&b, section)
		}
		text, err := c.shownValue(s)
		if err != nil {
			return fmt.Errorf("config: show %s: %w", s.key, err)
		}
		fmt.Fprintf(&b, "%-40s # %s\n", indent(s.key)+s.name()+": "+text, c.Source(s.key))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeSection writes the start of a section.
func writeSection(b *bytes.Buffer, section string) {
	if sectionOf(section) == "" {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "%s%s:\n", indent(section), section[strings.LastIndexByte(section, '.')+1:])
}

// indent returns what a setting or a section is indented by.
func indent(key string) string { return strings.Repeat("  ", strings.Count(key, ".")) }

// notShown stands for a secret.
const notShown = "(set, not shown)"

// shownValue returns the value of s as YAML on one line.
func (c *Config) shownValue(s setting) (string, error) {
	value := s.value(c)
	switch v := value.(type) {
	case string:
		if s.is("secret") && v != "" {
			v = notShown
		}
		return flow(v)
	case []string:
		v = slices.Clone(v)
		for i := range v {
			if s.is("secret") {
				v[i] = notShown
			}
		}
		return flow(v)
	default:
		return format(value), nil
	}
}

// flow formats a text or a list of texts as YAML on one line.
func flow(value any) (string, error) {
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	node.Style = yaml.FlowStyle
	for _, item := range node.Content {
		item.Style = yaml.DoubleQuotedStyle
	}
	if node.Kind == yaml.ScalarNode {
		node.Style = yaml.DoubleQuotedStyle
	}
	out, err := yaml.Marshal(&node)
	return string(bytes.TrimSpace(out)), err
}
