//go:build soak

package storage

import "testing"

// TestSoakModel is TestAgainstModel with more cases.
func TestSoakModel(t *testing.T) {
	tries(t, 3000)
	againstModel(t)
}

// TestSoakPowerCut is TestPowerCutAgainstModel with more commits that are cut.
func TestSoakPowerCut(t *testing.T) { cutPower(t, 50) }

// TestSoakDamage is TestCheckRandomDamage with more damages.
func TestSoakDamage(t *testing.T) { damageAndCheck(t, 5000) }
