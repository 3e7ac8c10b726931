package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"testing"
)

func newText(t testing.TB) string {
	t.Helper()
	raw := make([]byte, keySize)
	rand.Read(raw)
	return base64.StdEncoding.EncodeToString(raw)
}

func keys(t testing.TB, current string, old ...string) *Keys {
	t.Helper()
	k, err := New(current, old)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatIsSealedOpensInItsPlaceOnly(t *testing.T) {
	k := keys(t, newText(t))
	for _, value := range [][]byte{nil, []byte("Li Lei"), bytes.Repeat([]byte{0}, 1<<16), []byte("\x00s1 looks sealed")} {
		sealed := k.Seal("hold 1", value)
		if len(sealed) != len(value)+Overhead || !IsSealed(sealed) {
			t.Errorf("%.20q became %d bytes, want %d more than %d", value, len(sealed), Overhead, len(value))
		}
		if len(value) > 0 && bytes.Contains(sealed, value) {
			t.Errorf("%.20q can be read in what is sealed", value)
		}
		if bytes.Equal(sealed, k.Seal("hold 1", value)) {
			t.Errorf("%.20q is sealed alike twice: its nonce is not random", value)
		}
		if got, err := k.Open("hold 1", sealed); err != nil || !bytes.Equal(got, value) {
			t.Errorf("%.20q opens as %.20q, %v", value, got, err)
		}
		if got, err := k.Open("hold 2", sealed); !errors.Is(err, ErrOpen) {
			t.Errorf("%.20q opens elsewhere as %.20q, %v", value, got, err)
		}
	}
}

func TestOldKeysOpenAndTheNewOneSeals(t *testing.T) {
	first, second, third := newText(t), newText(t), newText(t)
	sealed := keys(t, first).Seal("a", []byte("text"))
	for name, c := range map[string]struct {
		keys *Keys
		want error
	}{
		"same":            {keys(t, first), nil},
		"rotated":         {keys(t, second, first), nil},
		"rotated twice":   {keys(t, third, second, first), nil},
		"key forgotten":   {keys(t, third, second), ErrKey},
		"sealing ended":   {keys(t, "", first), nil},
		"no keys":         {keys(t, ""), ErrKey},
		"nil":             {nil, ErrKey},
		"the key repeats": {keys(t, first, first), nil},
	} {
		got, err := c.keys.Open("a", sealed)
		if !errors.Is(err, c.want) || err == nil && string(got) != "text" {
			t.Errorf("%s: %q, %v; want %v", name, got, err, c.want)
		}
	}
	rotated := keys(t, second, first)
	if _, err := keys(t, second).Open("a", rotated.Seal("a", []byte("text"))); err != nil {
		t.Errorf("after a rotation the new key does not open what was sealed: %v", err)
	}
}

func TestWithoutAKeyNothingIsSealed(t *testing.T) {
	old := newText(t)
	for name, k := range map[string]*Keys{"nil": nil, "none": keys(t, ""), "old keys alone": keys(t, "", old)} {
		if got := k.Seal("a", []byte("text")); k.Seals() || string(got) != "text" {
			t.Errorf("%s: sealed as %q", name, got)
		}
	}
	// Written before the key was configured.
	if got, err := keys(t, old).Open("a", []byte("text")); err != nil || string(got) != "text" {
		t.Errorf("unsealed text opens as %q, %v", got, err)
	}
}

func TestAnyChangeOfASealedValueIsNoticed(t *testing.T) {
	k := keys(t, newText(t))
	sealed := k.Seal("a", []byte("text"))
	for i := len(mark); i < len(sealed); i++ {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		want := ErrOpen
		if i < len(mark)+len(version)+idSize {
			want = ErrKey // another version, or another key's
		}
		if got, err := k.Open("a", bad); !errors.Is(err, want) {
			t.Errorf("byte %d changed: %q, %v; want %v", i, got, err, want)
		}
	}
	for n := len(mark); n < len(sealed); n++ {
		if got, err := k.Open("a", sealed[:n]); err == nil {
			t.Errorf("cut to %d bytes it opens as %q", n, got)
		}
	}
}

func TestKeysAre32BytesInBase64(t *testing.T) {
	for _, bad := range []string{"secret", "AAAA", newText(t) + "AAAA", newText(t)[1:], " " + newText(t)} {
		if _, err := New(bad, nil); err == nil || bytes.Contains([]byte(err.Error()), []byte(bad)) {
			t.Errorf("%q as the current key: %v", bad, err)
		}
		if _, err := New(newText(t), []string{bad}); err == nil {
			t.Errorf("%q is taken as an old key", bad)
		}
	}
	if _, err := New(newText(t), []string{""}); err == nil {
		t.Error("an empty old key is taken")
	}
}

func BenchmarkSeal(b *testing.B) {
	k, value := keys(b, newText(b)), make([]byte, 300)
	for b.Loop() {
		k.Seal("answer slotgate:k:{0123456789abcdefghijkl}", value)
	}
}

func BenchmarkOpen(b *testing.B) {
	k := keys(b, newText(b))
	sealed := k.Seal("answer slotgate:k:{0123456789abcdefghijkl}", make([]byte, 300))
	for b.Loop() {
		if _, err := k.Open("answer slotgate:k:{0123456789abcdefghijkl}", sealed); err != nil {
			b.Fatal(err)
		}
	}
}
