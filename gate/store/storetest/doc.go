// Package storetest holds every store to the contract in the package
// documentation of gate/store.
//
// Run is one subtest for each sentence of it, named after the design's rule.
// RunModel compares a store with a small reference model over random histories.
// Both move the store's clock through the harness and never sleep, so that a
// store may sit on real time as long as Advance adds to it: no check is closer
// than three seconds to the moment when its answer changes.
//
// # Mutations
//
// Each of these guards was taken out of the scripts, one at a time, to see which test of
// gate/store/redisstore fails first; package interleave has more, which every run plays.
//
//	token: a leadership is given up by another     TestTruth/lead/who resigns lets another lead ...
//	token: a leadership that stands is taken       TestALateCopyLeavesTheLeadership
//	owner: any attempt releases a key              TestALateCopyChangesNothing/settle, guard
//	replay: a settled attempt is settled again     TestALateCopyChangesNothing/settle, refused
//	replay: a grant is made again (H4)             TestConformance/hold/H4: a repeated decide ...
//	replay: a finished id is taken again (H4)      TestConformance/hold/H4: a late copy of a finished ...
//	replay: a refused copy leaves no tombstone     TestTheFirstCopyOfARefusedCallTakesNothing
//	version: newer data is read                    TestStrangeData/the key record is of a newer version
//	fence: an old leader's look is applied         TestTruth/order/an apply of an older leader ...
//	order: an older look is applied                TestALateCopyChangesNothing/apply
//	scope: an answer is replayed to anybody (P5)   TestConformance/key/done: another scope ...
//	fingerprint: a key is another request's (H19)  TestConformance/key/H19: another fingerprint ...
//	run: counters of another run count (H16)       TestTruth/order/H18: a touch makes looks ...
//	run: other data, and the run stays             TestAStartOnTheDataOfAnotherProcess
//	release counter: a stale sold out marks (H12)  TestConformance/mark/H12: a release since ...
//	unanswered attempts do not count (H2)          TestConformance/hold/H4: a late copy of an adopter's ...
//	a booked attempt does not tell its key (P2)    TestConformance/key/P2: a booked attempt ...
//
// On a cluster, where the steps are taken out of the gate's part too:
//
//	the key is settled before the slot (H20)       TestClusterRules/H20
//	a hold found booked is forwarded (H21)         TestClusterRules/H21
//	a hold that is gone keeps the claim (H22)      TestClusterRules/H22
//	a refused request keeps its claim              TestCluster/conformance/key/H22: the new hold ...
//	a refused request keeps its reservation        TestCluster/conformance/subject/... refuses counts nothing
//	a decide tells the pool nothing                TestCluster/conformance/subject/... kept counts ...
//	a note that failed is not made again           TestClusterASettlementTellsItsPoolInTheEnd
//	a note that was overtaken counts               TestClusterRules/a copy that comes late/of a booking
//	a claim is ended by a late copy                TestClusterRules/a copy that comes late/of a call that ...
//	a key has another hash tag                     luascripts TestKeysOfOnePartShareAShard
//	a ledger is not shipped by who touched         TestClusterAnOutboxIsFilledByWhoTouched
//	a ledger is shipped by two at a time           TestClusterALedgerIsShippedByOneGateAtATime
//	an entry is shipped without its ledger id      TestClusterOutboxHasEveryTransition
//	a slot is not enlisted                         TestClusterOutboxHasEveryTransition
//	a touch that failed is not finished            TestClusterATouchClaimsItsKeysInTheEnd
//	a settlement made again forgets the key        TestClusterRules/a booking that is settled again ...
package storetest
