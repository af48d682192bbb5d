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

// TestSoakFlips is TestFlips with every byte of the file.
func TestSoakFlips(t *testing.T) {
	for _, bits := range []byte{0x01, 0x80, 0xff} {
		flipBytes(t, 1, bits)
	}
}

// TestSoakSalvage is TestSalvageFlips with more of the file.
func TestSoakSalvage(t *testing.T) { salvageFlips(t, 3, 0x80) }
