package main

import (
	"runtime/debug"
	"testing"

	"github.com/amble-crawler/amble/internal/testing/assert"
)

func TestVersions(t *testing.T) {
	info := func(version string, settings ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: version}}
		for n := 0; n < len(settings); n += 2 {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: settings[n], Value: settings[n+1]})
		}
		return i
	}
	const revision = "abd411d71ff282003e38358ce5adcc64557f8b86"
	for _, tt := range []struct {
		set  string
		info *debug.BuildInfo
		want string
	}{
		{"v1.2.3", info("v9"), "1.2.3"},
		{"", info("v1.4.0"), "1.4.0"},
		{"", info("v0.0.0-20261122114537-abd411d71ff2+dirty"), "0.0.0-20261122114537-abd411d71ff2+dirty"},
		{"", info("(devel)", "vcs.revision", revision), "dev-abd411d71ff2"},
		{"", info("", "vcs.revision", revision, "vcs.modified", "true"), "dev-abd411d71ff2-dirty"},
		{"", info("(devel)"), "dev"},
		{"", nil, "dev"},
	} {
		assert.Equal(t, versionOf(tt.set, tt.info), tt.want, tt.set, tt.info)
	}
}
