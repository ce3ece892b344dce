/** The `noetl` command that does what a button does, ready to be pasted into a shell. */

export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function command(...words: (string | number | null | undefined)[]): string {
  return ["noetl", ...words.filter((word) => word != null && word !== "").map((word) => quote(String(word)))].join(" ");
}

/** `--payload JSON`, or nothing for an empty mapping. */
export function payload(value: Record<string, unknown>): string[] {
  return Object.keys(value).length ? ["--payload", JSON.stringify(value)] : [];
}
