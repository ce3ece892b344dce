/** Lines and columns as the server counts them (from 1, in code points), and offsets as the editor does (UTF-16). */

/** The offset of a column in the text of its line; behind its end is its end. */
export function unitsOf(line: string, column: number): number {
  let units = 0;
  let left = column - 1;
  for (const character of line) {
    if (left-- <= 0) break;
    units += character.length;
  }
  return units;
}

/** The column of an offset in the text of its line. */
export function columnOf(line: string, units: number): number {
  return [...line.slice(0, units)].length + 1;
}

/** Where what begins at an offset ends: a word, or one character, so that something is marked. */
export function wordEnd(line: string, from: number): number {
  const word = /^(?:[\w$.-]+|["'][^"']*["']|\S)/.exec(line.slice(from));
  return from + (word?.[0].length ?? 0);
}
