// What the desk and its page send each other (app.py and desk.py make these), and what the page's parts tell one another.

export type Verdict = "normal" | "anomaly" | "skip";

/** A distinct text and what is known of it: an item of GET /api/queue and /api/texts. */
export interface Item {
  id: number;
  text: string; // its first characters
  length: number; // of all of it, in characters
  n_rows: number;
  rows: number[]; // the first of them
  names: (string | null)[]; // what the file calls these rows; empty where it has no column for that
  anomaly_score: number;
  p_value: number;
  flagged: boolean;
  rank: number;
  label: Verdict | null;
  given: string | null; // the label it came with
  why: { kind: string; words: string } | null; // why it is asked about
}

/** One action of a person, as in the history of a text. */
export interface PastVerdict {
  event: number;
  verdict: Verdict;
  who: string;
  at: string;
  undone: boolean;
}

/** The same, as in the history of the project: with the texts it was about. */
export interface PastEvent extends PastVerdict {
  replaced: boolean;
  ids: number[];
  n: number;
  text: string; // of the first
  names: (string | null)[]; // what the file calls its rows
}

/** GET /api/state */
export interface State {
  file: string | null;
  project: string;
  n_texts: number;
  n_rows: number;
  n_open: number;
  judged: { normal: number; anomaly: number; skipped: number };
  given: { normal: number; anomaly: number };
  found: number;
  hidden: { estimate: number; low: number; high: number } | null;
  no_estimate: string | null; // why `hidden` is null
  generation: number; // of the model
  refitting: boolean;
  trouble: string | null;
  fresh: number; // verdicts since the last fit
  every: number; // verdicts from one fit to the next
  learnt: { n_labels: number; seconds: number; says: string | null };
  threshold: string;
  n_flagged: number;
  encoder: string;
  detector: string;
  last_event: number;
  people: { who: string; n: number }[];
  save: { folder: string; state: "none" | "working" | "done" | "failed"; words: string };
}

/** GET /api/queue */
export interface QueueAnswer {
  generation: number;
  items: Item[];
  left: number; // texts that nobody has judged
}

/** GET /api/texts */
export interface TextsAnswer {
  total: number;
  items: Item[];
}

/** GET /api/texts/ID */
export interface TextAnswer extends Item {
  history: PastVerdict[];
}

/** GET /api/texts/ID/why */
export interface WhyAnswer {
  what_is_odd: string; // in words; quotes the text
  odd_all_over: boolean;
  copies: string; // how many copies of the text there are, in words; "" if none
  segments: Segment[];
  nearest_normals: Neighbour[];
  nearest_anomalies: Neighbour[];
}

export interface Segment {
  start: number;
  end: number;
  effect: number;
}

export interface Neighbour {
  text: string;
  similarity: number;
  n_copies: number;
}

/** GET /api/history */
export interface HistoryAnswer {
  events: PastEvent[];
}

/** GET /api/map/values */
export interface MapValues {
  generation: number;
  value: number[];
  mark: string[]; // a verdict, "flagged" or ""
}

/** GET /api/map: places too, or `working` while these are computed. */
export interface MapAnswer extends MapValues {
  working?: boolean;
  ids: number[];
  x: number[];
  y: number[];
}

/** POST /api/verdicts and /api/undo */
export interface ActionAnswer {
  state?: State;
  queue?: QueueAnswer;
  kept?: number[]; // texts that kept the verdicts they had
  undone?: Undone | null;
}

export interface Undone {
  ids: number[];
  verdict?: Verdict;
  text?: string;
}

/** What waits in the outbox until the desk has acknowledged it. */
export interface Entry {
  kind: "verdict" | "undo";
  ids: number[];
  verdict?: Verdict; // of a verdict
  too?: boolean; // whether it also replaces verdicts that stand
  who: string;
  text: string;
  trouble?: string;
  refused?: boolean;
  uncertain?: boolean; // sent, and never answered
  after?: number; // the last event before it was sent
}

/** What parts of the page tell each other, by name. */
export interface Events {
  act: string; // a button or key: a verdict, "undo", "ahead" or "back"
  key: KeyboardEvent;
  learnt: State;
  outbox: Entry[];
  present: Item | null;
  queue: { queue: QueueAnswer; asked: number };
  reach: { gone: boolean; message?: string; locked?: boolean };
  refused: Entry;
  saved: Entry & { kept: number[] };
  settle: number[]; // ids of texts that were judged on this page
  state: { state: State; before: State | null };
  undone: Undone;
  view: string;
  watch: undefined;
}
