// The tests use a few functions of Node; its types are 2 MB.
declare module "node:test" {
  export function test(name: string, body: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  export function equal(actual: unknown, expected: unknown, message?: string): void;
  export function deepEqual(actual: unknown, expected: unknown, message?: string): void;
  export function throws(body: () => void, message: RegExp): void;
  export function ok(value: unknown, message?: string): void;
}
