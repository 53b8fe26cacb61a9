// Generated from the table of verbs, server/src/control/verbs. To generate it again:
// UPDATE_EXPECT=1 cargo test -p minikeeper --test bindings
package io.github.minikeeper;

/**
 * An operation that a fault applies to: see {@link FaultSpec#on}. {@link #CREATE}, {@link #GET_CHILDREN} and
 * {@link #SET_WATCHES} include their later forms, such as {@link #CREATE2}.
 */
public enum FaultOp {
  /** {@code create}. */
  CREATE("create"),
  /** {@code create2}. */
  CREATE2("create2"),
  /** {@code createContainer}. */
  CREATE_CONTAINER("createContainer"),
  /** {@code createTTL}. */
  CREATE_TTL("createTTL"),
  /** {@code multi}. */
  MULTI("multi"),
  /** {@code multiRead}. */
  MULTI_READ("multiRead"),
  /** {@code delete}. */
  DELETE("delete"),
  /** {@code exists}. */
  EXISTS("exists"),
  /** {@code getData}. */
  GET_DATA("getData"),
  /** {@code setData}. */
  SET_DATA("setData"),
  /** {@code getACL}. */
  GET_ACL("getACL"),
  /** {@code setACL}. */
  SET_ACL("setACL"),
  /** {@code getChildren}. */
  GET_CHILDREN("getChildren"),
  /** {@code sync}. */
  SYNC("sync"),
  /** {@code ping}. */
  PING("ping"),
  /** {@code getChildren2}. */
  GET_CHILDREN2("getChildren2"),
  /** {@code check}. */
  CHECK("check"),
  /** {@code reconfig}. */
  RECONFIG("reconfig"),
  /** {@code checkWatches}. */
  CHECK_WATCHES("checkWatches"),
  /** {@code removeWatches}. */
  REMOVE_WATCHES("removeWatches"),
  /** {@code deleteContainer}. */
  DELETE_CONTAINER("deleteContainer"),
  /** {@code auth}. */
  AUTH("auth"),
  /** {@code setWatches}. */
  SET_WATCHES("setWatches"),
  /** {@code sasl}. */
  SASL("sasl"),
  /** {@code getEphemerals}. */
  GET_EPHEMERALS("getEphemerals"),
  /** {@code getAllChildrenNumber}. */
  GET_ALL_CHILDREN_NUMBER("getAllChildrenNumber"),
  /** {@code setWatches2}. */
  SET_WATCHES2("setWatches2"),
  /** {@code addWatch}. */
  ADD_WATCH("addWatch"),
  /** {@code whoAmI}. */
  WHO_AM_I("whoAmI"),
  /** {@code connect}. */
  CONNECT("connect"),
  /** {@code closeSession}. */
  CLOSE_SESSION("closeSession"),
  /** {@code request}: every operation but {@code connect}, {@code ping} and {@code closeSession}. */
  REQUEST("request");

  private final String text;

  FaultOp(String text) {
    this.text = text;
  }

  /** Its name in the protocol. */
  @Override
  public String toString() {
    return text;
  }
}
