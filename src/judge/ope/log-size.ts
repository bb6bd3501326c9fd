/** How large a log must be. Every warning and refusal of a small log names this one figure. */

/** Units of the whole log, all parts of its split. With fewer a learned router can hardly be judged: a fifth of them judge, and
 *  where a quarter of those speak of the policy, the effective sample size is the 50 that an estimate needs. Rows of one unit are
 *  no independent evidence. */
export const ENOUGH_UNITS = 1000;

/** The next step for a log that is too small, without a full stop. */
export const SMALL_LOG_REMEDY = `Log about ${ENOUGH_UNITS} different tasks in all, to train a router and judge it; rows of one task count once`;

/** Of a log where every choice has the probability 1, without a full stop. */
export const CERTAIN_LOG =
  "the logged probability of every choice is 1, so the log says nothing about other choices. Log the probability that the router gave to its choice; if it never varies its choices, let it explore";
