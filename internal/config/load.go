package config

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/viper"
)

// DefaultFile is the config file that is read where none was named, if it exists.
const DefaultFile = "config.yaml"

// delimiter parts the sections of a key inside viper. With viper's own, the dot, a key that holds a host
// name would be cut into pieces.
const delimiter = "::"

// Load reads the settings. path is the config file; where it is empty, ./config.yaml is read if there is one. sets are the
// values of --set flags (key=value), environ is the environment in the form of os.Environ. Later sources are
// stronger: defaults, file, environment, sets.
//
// The error is of type Errors and holds everything that is wrong, not only what was found first. Bad seeds are
// no error here: see Seeds.
func Load(path string, sets []string, environ []string) (*Config, error) {
	return LoadPatched(path, sets, environ, nil)
}

// PatchName is the name of the source of what LoadPatched was given as a patch.
const PatchName = "API"

// LoadPatched is Load with one more source, stronger than all others: settings in the form of the file, YAML or JSON.
func LoadPatched(path string, sets []string, environ []string, patch []byte) (*Config, error) {
	words, r := newVocabulary(), newReport()
	file, body := locate(path, r)
	doc := &document{path: file, words: words, r: r}
	inFile := doc.read(body)
	inEnvironment := fromEnvironment(environ, words, r)
	inFlags := fromFlags(sets, words, r)
	patches := &document{path: PatchName, order: orderPatch, words: words, r: r}
	inPatch := patches.read(patch)

	c, err := layered(words, inFile, inEnvironment, append(inFlags, inPatch...))
	if err != nil {
		return nil, err
	}
	c.file = file
	c.check(r)
	if len(r.problems) > 0 {
		return nil, r.sorted()
	}
	c.resolvePaths()
	return c, nil
}

// locate finds and reads the config file. The name is empty where there is none.
func locate(path string, r *report) (string, []byte) {
	named := path != ""
	if !named {
		path = DefaultFile
	}
	body, err := readFile(path)
	switch {
	case err == nil:
		return path, body
	case !named && errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	r.add(unreadable(path, err))
	return path, nil
}

// layered lays the sources over each other and fills a Config. Every value has the type of its field already.
//
// The environment is handed in rather than read by viper, so that it can be checked and so that tests own it. It
// is merged over the file, which comes to the same order.
func layered(words *vocabulary, inFile, inEnvironment, inFlags []given) (*Config, error) {
	v := viper.NewWithOptions(viper.KeyDelimiter(delimiter))
	defaults := Default()
	for _, s := range words.settings {
		v.SetDefault(s.path(), s.value(&defaults))
	}
	c := &Config{origins: map[string]origin{}}
	for _, layer := range [][]given{inFile, inEnvironment} {
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

// path is the key as viper knows it.
func (s setting) path() string { return strings.ReplaceAll(s.key, ".", delimiter) }

func nested(layer []given) map[string]any {
	top := map[string]any{}
	for _, g := range layer {
		section := top
		if name := g.setting.section(); name != "" {
			if top[name] == nil {
				top[name] = map[string]any{}
			}
			section = top[name].(map[string]any)
		}
		section[g.setting.name()] = g.value
	}
	return top
}

func (c *Config) remember(layer []given) {
	for _, g := range layer {
		c.origins[g.setting.key] = g.origin
	}
}
