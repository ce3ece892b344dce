"""Playbooks that the tests of the page look at and run."""

PRICES = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: prices, path: shop/prices, description: Adds prices up.}
workload:
  shop: north
  limit: 10
  ratio: 0.5
  dry: false
  tags: [a, b]
  source: {url: "https://example.org/prices", timeout: 30}
workflow:
- step: start
  tool:
  - name: read
    kind: python
    args: {limit: "{{ workload.limit }}", shop: "{{ workload.shop }}"}
    code: |
      def main(limit, shop):
          if shop.startswith("bad"):
              raise ValueError(f"no price for {shop}")
          return {"total": limit * 2}
  next:
    arcs:
    - step: report
      when: "{{ event.name == 'step.done' and workload.limit < 100 }}"
    - step: refuse
      when: "{{ event.name == 'step.done' }}"
- step: report
  tool: {kind: noop, args: {}}
- step: refuse
  tool: {kind: noop, args: {}}
"""
APPROVAL = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: approval, path: shop/approval}
workflow:
- step: ask
  tool:
    kind: wait
    signal: decided
    title: Approve the refund of order 17?
    description: The customer sent it back after 20 days.
    schema:
      type: object
      required: [decision, reason]
      properties:
        decision: {type: string, enum: [approve, refuse], title: Decision}
        reason: {type: string, minLength: 3, title: Reason}
        amount: {type: number, minimum: 0, maximum: 500, title: Amount, default: 20}
  next: {arcs: [{step: done}]}
- step: done
  tool: {kind: noop, args: {}}
"""
HOLD = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: hold, path: shop/hold}
workflow:
- step: ask
  tool: {kind: wait, signal: go}
"""
SEATS = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: seats, path: shop/seats}
workflow:
- step: each
  loop: {in: [ada, bert, cleo], iterator: guest, spec: {mode: parallel, max_in_flight: 3}}
  tool:
    name: ask
    kind: wait
    signal: seated
    title: "Where does {{ iter.guest }} sit?"
    schema: {type: object, required: [seat], properties: {seat: {type: integer, title: Seat}}}
"""
NOTHING = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: nothing, path: shop/nothing}
workflow:
- step: start
  tool: {kind: noop, args: {}}
"""
PLAYBOOKS = {"shop/nothing": NOTHING, "shop/prices": PRICES, "shop/hold": HOLD}
