/** What is not seen at first sight, in one file: in several, each page would load more and smaller parts. */
export { OutlineTree } from "../../net/outline-tree";
export { Attempts } from "./attempts";
export { Console } from "./console";
export { Events } from "./events";
export { exportPage } from "./export";
export { ForkDialog } from "./fork";
export { Logs } from "./logs";
export { RedriveDialog, RetryDialog } from "./reopen";
export { SignalDialog } from "./signal";
export { StoredValue } from "./stored-value";
