// Package issue is the one-time request ids that a gate hands out with booking pages, to
// browsers whose pages cannot send an Idempotency-Key (rules: idempotency.issue).
//
// # The life of an id
//
// A page that is fetched without a good id gets one, in a cookie. The booking brings it
// back: it is the key, for the subject that is booked. However often the booking comes
// again with it (a double click, Back and submit, a reload of the answer, a repeat because
// no answer came), it is the same booking. When the browser has been given a final answer
// the id is marked as spent, in the cookie, and the next fetch of the page brings a new
// one: a second booking that is meant is possible. As long as the answer was not seen,
// reloading the page changes nothing.
//
// Where the answer said that the outcome is not known, the id is spent only when the
// backend has certainly finished (after hold_ttl, design A1), so that a page fetched
// before that cannot book twice. Where the answer is a redirect, it is spent after
// RedirectGrace: many sites lead from a booking to the page that it was made on, and Back
// from there is no second booking.
//
// Nothing of this is kept in the gate or the store: the cookie says it all, and it is
// signed. Whoever takes cookies out of a browser, or puts old ones back, can lose their
// own booking's dedupe, as by sending no key at all, and nothing else.
//
// # Tabs
//
// A browser has one cookie of a name for all tabs. Each slot has its own (Binding.Name),
// so that tabs of two slots know nothing of each other. Two tabs of one slot share an id:
// the same booking from both is one booking, and one for another subject is another.
//
// # Limits
//
// An id is good for the rule's ttl, counted from when it was issued, so that the record of
// a booking that was made with it outlives it. Half a ttl old, an unused one is replaced.
// A browser is left at most MaxCookies of a name: the oldest are taken out when one is
// added, long before a browser would throw out the backend's. A cookie that is not signed
// by this store's gates, is too old or is for another slot counts as none: the store's
// secret may have changed, and whoever can forge it can leave it out as well. Where
// `required` is set the answer is then 400 key-missing, which tells to load the page again.
//
// # Caches
//
// No cookie goes with an answer that a shared cache may store (RFC 9111, 3): the next
// visitor would get it. A page that says for how long it may be used, that it is public,
// or anything to a cache of a certain kind, goes as it is and issues nothing. One that a
// cache may store because nothing says otherwise, and has to ask the backend about before
// it uses it, gets Cache-Control: private with the cookie. Vary does not make a page
// private. Only whole pages (200, to GET) issue ids; where one is due, the request's
// If-None-Match and the like are not passed on, so that there is a whole page to bring it.
//
// # The backend
//
// It never sees the cookies, nor do extractors: Take takes them off the request at the
// door. A scope of header:Cookie is then that of the browser's other cookies, and stays
// what it was when an id changes; caches and logs at the backend see what they would
// without the gate.
package issue
