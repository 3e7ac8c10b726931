package memstore

// deadline is when something is due, and its place in the queue it waits in. It
// is embedded in what waits; a thing waits in one queue at a time.
type deadline struct {
	at    int64 // nanoseconds of the store's clock
	place int   // from 1; 0 in no queue
}

func (d *deadline) when() *deadline { return d }

// queue is a binary heap with the soonest first, from which any element can be
// taken.
type queue[T interface{ when() *deadline }] []T

// due returns the soonest element if its time has come.
func (q queue[T]) due(now int64) (first T, ok bool) {
	if len(q) == 0 || q[0].when().at > now {
		return first, false
	}
	return q[0], true
}

// put adds an element, or moves it to another time.
func (q *queue[T]) put(x T, at int64) {
	d := x.when()
	d.at = at
	if d.place == 0 {
		*q = append(*q, x)
		d.place = len(*q)
	}
	q.settle(d.place)
}

// remove takes an element out; one that is not in the queue stays out.
func (q *queue[T]) remove(x T) {
	d := x.when()
	if d.place == 0 {
		return
	}
	hole, last := d.place, len(*q)
	q.swap(hole, last)
	var none T
	(*q)[last-1] = none
	*q = (*q)[:last-1]
	d.place = 0
	if hole < last {
		q.settle(hole)
	}
	if len(*q) == 0 {
		*q = nil // a queue that once was long does not keep its room
	}
}

// settle moves the element at a place to where its time belongs.
func (q queue[T]) settle(place int) {
	for place > 1 && q.before(place, place/2) {
		q.swap(place, place/2)
		place /= 2
	}
	for {
		child := 2 * place
		if child > len(q) {
			return
		}
		if child < len(q) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, place) {
			return
		}
		q.swap(child, place)
		place = child
	}
}

func (q queue[T]) before(a, b int) bool { return q[a-1].when().at < q[b-1].when().at }

func (q queue[T]) swap(a, b int) {
	q[a-1], q[b-1] = q[b-1], q[a-1]
	q[a-1].when().place, q[b-1].when().place = a, b
}
