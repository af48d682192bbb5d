package config

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/viper"
)

// DefaultFile is the config file that is read if none is named and it exists.
const DefaultFile = "config.yaml"

// delimiter separates the sections of a key inside viper. viper's default, the dot, would split
// keys that contain a host name.
const delimiter = "::"

// PatchName is the name of the source of a patch of LoadPatched.
const PatchName = "API"

// LoadPatched reads the settings. path is the config file; if it is empty, ./config.yaml is read if it
// exists. sets are the values of --set flags (key=value), environ is the environment in the form of
// os.Environ. patch is settings in the form of the file, YAML or JSON. Later sources are stronger:
// defaults, file, environment, sets, patch.
//
// The error is of type Errors and lists all problems, not only the first. Bad seeds are no error
// here: see Seeds.
func LoadPatched(path string, sets []string, environ []string, patch []byte) (*Config, error) {
	words, r := newVocabulary(), newReport()
	file, body := locate(path, r)
	doc := &document{path: file, words: words, r: r}
	inFile := doc.read(body)
	inEnvironment := fromEnvironment(environ, words, r)
	inFlags := fromFlags(sets, words, r)
	patches := &document{path: PatchName, rank: rankPatch, words: words, r: r}
	inPatch := patches.read(patch)

	c, err := layered(words, inFile, inEnvironment, append(inFlags, inPatch...))
	if err != nil {
		return nil, err
	}
	c.file = file
	c.resolveAdaptive()
	c.check(r)
	if len(r.problems) > 0 {
		return nil, r.sorted()
	}
	c.resolvePaths()
	return c, nil
}

// locate finds and reads the config file. The name is empty if there is none.
func locate(path string, r *report) (string, []byte) {
	isSet := path != ""
	if !isSet {
		path = DefaultFile
	}
	body, err := readFile(path)
	switch {
	case err == nil:
		return path, body
	case !isSet && errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	r.add(unreadable(path, err))
	return path, nil
}

// layered merges the sources and fills a Config. Every value already has the type of its field.
//
// The environment is a parameter and not read by viper, so that it can be checked and so that tests
// control it. It is merged over the file.
func layered(words *vocabulary, inFile, inEnvironment, inFlags []settingValue) (*Config, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter(delimiter))
	defaults := Default()
	for _, s := range words.settings {
		v.SetDefault(s.path(), s.value(&defaults))
	}
	c := &Config{origins: map[string]origin{}}
	for _, layer := range [][]settingValue{inFile, inEnvironment} {
		if err := v.MergeConfigMap(nested(layer)); err != nil {
			return nil, fmt.Errorf("config: merge: %w", err)
		}
		c.remember(layer)
	}
	for _, g := range inFlags {
		v.Set(g.setting.path(), g.value)
	}
	c.remember(inFlags)
	if err := v.UnmarshalExact(c); err != nil {
		return nil, fmt.Errorf("config: unmarshal: %w", err)
	}
	return c, nil
}

// path returns the key as viper knows it.
func (s setting) path() string { return strings.ReplaceAll(s.key, ".", delimiter) }

func nested(layer []settingValue) map[string]any {
	top := map[string]any{}
	for _, g := range layer {
		g.setting.put(top, g.value)
	}
	return top
}

func (c *Config) remember(layer []settingValue) {
	for _, g := range layer {
		c.origins[g.setting.key] = g.origin
	}
}

// variablePrefix begins the name of every setting in the environment.
const variablePrefix = "AMBLE_"

// orchestrated matches the variables that Kubernetes and Docker links set for a service called
// amble. They are neither settings nor mistakes.
func orchestrated(name string) bool {
	const port = `PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?`
	service := regexp.MustCompile(`^AMBLE(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|` + port + `)$`)
	return service.MatchString(name)
}

// fetcherToken is the variable that the example fetchers read their token from before they shared that of
// server.fetch_token. It may still be set where amble runs, and is no setting.
const fetcherToken = "AMBLE_FETCH_TOKEN"

// fromEnvironment reads the AMBLE_ variables of environ, which has the form of os.Environ. An empty
// variable counts as unset. A variable that is no setting is a problem: it is probably misspelt,
// and would have no effect.
func fromEnvironment(environ []string, words *vocabulary, r *report) []settingValue {
	byVariable := map[string]setting{}
	for _, s := range words.settings {
		byVariable[s.variable()] = s
	}
	var found []settingValue
	for _, entry := range environ {
		name, text, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || text == "" {
			continue
		}
		source := Source{Name: clipped(name), rank: rankEnvironment}
		s, known := byVariable[name]
		switch {
		case known:
			found = appendText(found, s, text, source, r)
		case name != fetcherToken && !orchestrated(name):
			r.add(Problem{Source: source, Message: unknownVariable(name, words)})
		}
	}
	return found
}

func unknownVariable(name string, words *vocabulary) string {
	best, least := "", tolerance(name)+1
	for _, s := range words.settings {
		if d := distance(name, s.variable()); d < least {
			best, least = s.variable(), d
		}
	}
	if best == "" {
		return "is no setting; use AMBLE_ and the name of a setting in capitals, such as AMBLE_POLITENESS_DELAY, or " +
			"unset it"
	}
	return "is no setting; did you mean " + best + "?"
}

// fromFlags reads the values of --set flags, each of the form key=value. If a key occurs more than
// once, the last wins.
func fromFlags(sets []string, words *vocabulary, r *report) []settingValue {
	source := Source{Name: "--set", rank: rankFlag}
	var found []settingValue
	for _, entry := range sets {
		key, text, ok := strings.Cut(entry, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			r.add(Problem{Source: source, Read: shown(entry),
				Message: "want key=value, such as --set politeness.delay=2s"})
			continue
		}
		s, known := words.byKey[key]
		if !known {
			r.add(Problem{Source: source, Key: clipped(key), Message: words.unknown(key)})
			continue
		}
		found = appendText(found, s, text, source, r)
	}
	return found
}

func appendText(found []settingValue, s setting, text string, source Source, r *report) []settingValue {
	value, bad := s.convertText(text)
	if bad != nil {
		r.add(Problem{Source: source, Key: s.key, Read: bad.read, Message: bad.want})
		return found
	}
	return append(found, settingValue{setting: s, value: value, origin: origin{Source: source, text: text}})
}
