/** A sentence of the server: what stands in backticks is code. */
export function Prose({ text }: { text: string }) {
  return <>{text.split("`").map((part, index) => (index % 2 ? <code key={index}>{bare(part)}</code> : part))}</>;
}

/** An expression without its braces. */
export function bare(expression: string): string {
  const inner = /^\s*\{\{\s*(.*?)\s*\}\}\s*$/s.exec(expression)?.[1];
  return inner !== undefined && !inner.includes("}}") ? inner : expression;
}
