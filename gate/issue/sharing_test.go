package issue

import (
	"slices"
	"testing"
	"time"
)

func TestWhatSharedCachesMayDo(t *testing.T) {
	later := time.Now().Add(time.Hour).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
	for _, row := range []struct {
		want   Sharing
		answer []string
	}{
		{Private, []string{"Cache-Control: private"}},
		{Private, []string{"Cache-Control: no-store"}},
		{Private, []string{"Cache-Control: No-Cache, NO-STORE ,must-revalidate"}},
		{Private, []string{"Cache-Control: no-cache", "cache-control: private"}},
		{Private, []string{"Cache-Control: private, max-age=600"}}, // the browser's own
		{Private, []string{"Cache-Control: public, no-store"}},
		{Private, []string{"Cache-Control: no-store", "Expires: " + later}},

		{Unclaimed, nil}, // 200 may be stored by heuristics (RFC 9111, 4.2.2)
		{Unclaimed, []string{"Last-Modified: Thu, 19 Nov 1981 08:52:00 GMT", "ETag: \"x\""}},
		{Unclaimed, []string{"Cache-Control: no-cache"}}, // stored, and asked about
		{Unclaimed, []string{"Cache-Control: max-age=0, must-revalidate"}},
		{Unclaimed, []string{"Cache-Control: max-age=0", "Expires: " + later}}, // max-age goes before
		{Unclaimed, []string{"Cache-Control: max-age=\"0\""}},
		{Unclaimed, []string{"Cache-Control: "}},
		{Unclaimed, []string{"Expires: 0"}},
		{Unclaimed, []string{"Expires: Thu, 19 Nov 1981 08:52:00 GMT", "Pragma: no-cache"}},
		{Unclaimed, []string{"Cache-Control: max-age=600, s-maxage=0"}},
		{Unclaimed, []string{"Vary: *"}},
		{Unclaimed, []string{"Cache-Control: no-cache=\"set-cookie, private\""}},

		{Shared, []string{"Cache-Control: max-age=600"}},
		{Shared, []string{"Cache-Control: max-age=600", "Vary: Cookie"}}, // two browsers without cookies are one
		{Shared, []string{"Cache-Control: public"}},
		{Shared, []string{"Cache-Control: public, max-age=0, must-revalidate"}},
		{Shared, []string{"Cache-Control: max-age=0, s-maxage=60"}},
		{Shared, []string{"Cache-Control: private=\"x-user\", max-age=60"}},
		{Shared, []string{"Cache-Control: max-age=0, max-age=60"}},
		{Shared, []string{"Cache-Control: max-age=soon"}},
		{Shared, []string{"Cache-Control: max-age"}},
		{Shared, []string{"Cache-Control: max-age=0, stale-while-revalidate=60"}},
		{Shared, []string{"Cache-Control: max-age=0, stale-if-error=60"}},
		{Shared, []string{"Cache-Control: must-understand, no-store"}}, // who understands 200 stores it
		{Shared, []string{"Expires: " + later}},
		{Shared, []string{"Cache-Control: private", "CDN-Cache-Control: max-age=60"}}, // RFC 9213
		{Shared, []string{"Cache-Control: no-store", "Surrogate-Control: max-age=60"}},
		{Shared, []string{"X-Accel-Expires: 60"}},
	} {
		answer := fields(row.answer...)
		if got := SharingOf(nil, answer); got != row.want {
			t.Errorf("%q: %d, want %d", row.answer, got, row.want)
		}
		if row.want == Unclaimed {
			before := slices.Clone(answer)
			if made := MakePrivate(answer); SharingOf(nil, made) != Private || len(made) > len(answer)+1 {
				t.Errorf("%q is made %v", row.answer, made)
			}
			if !slices.Equal(answer, before) {
				t.Errorf("%v was changed to %v", before, answer)
			}
			if got := SharingOfPost(nil, answer); got != Private {
				t.Errorf("%q in answer to a POST: %d", row.answer, got)
			}
		} else if got := SharingOfPost(nil, answer); got != row.want {
			t.Errorf("%q in answer to a POST: %d", row.answer, got)
		}
	}
}

// TestCredentialsKeepAnAnswerPrivate: RFC 9111, 3.5.
func TestCredentialsKeepAnAnswerPrivate(t *testing.T) {
	request := fields("authorization: Bearer x")
	for _, row := range []struct {
		want   Sharing
		answer string
	}{
		{Private, "ETag: \"x\""},
		{Private, "Cache-Control: max-age=600"},
		{Shared, "Cache-Control: public"},
		{Shared, "Cache-Control: max-age=600, must-revalidate"},
		{Shared, "Cache-Control: s-maxage=600"},
		{Unclaimed, "Cache-Control: must-revalidate"},
		{Unclaimed, "Cache-Control: s-maxage=0, max-age=600"},
	} {
		if got := SharingOf(request, fields(row.answer)); got != row.want {
			t.Errorf("%q: %d, want %d", row.answer, got, row.want)
		}
	}
}
