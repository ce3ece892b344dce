/** How many waits there are, for the navigation: read once, then whenever the stream says that they changed. */
import { signal } from "@preact/signals";
import { get } from "../api/client";
import type { WaitList } from "../api/types";
import { subscribe } from "../stream";

/** Up to 100: more are not told apart. */
export const waitingCount = signal(0);

async function read(): Promise<void> {
  try {
    waitingCount.value = (await get<WaitList>("waits", { query: { limit: 100 } })).waits.length;
  } catch {
    // The page that is shown says what is wrong with the server; a count says nothing then.
  }
}

export function followWaits(): () => void {
  void read();
  return subscribe(["waits"], (message) => message.event === "waits" && void read());
}
