package org.apache.curator.test;

import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;

/** Replaces Curator's class of the same name, which only newer versions have. */
public class InstanceSpecBuilder {
  private File dataDirectory;
  private boolean deleteDataDirectoryOnClose = true;
  private int port = -1;
  private int electionPort = -1;
  private int quorumPort = -1;
  private int serverId = -1;
  private int tickTime = -1;
  private int maxClientCnxns = -1;
  private Map<String, Object> customProperties;
  private String hostname;

  /** The directory of its data; null creates one. */
  public InstanceSpecBuilder withDataDirectory(File dataDirectory) {
    this.dataDirectory = dataDirectory;
    return this;
  }

  /** The directory of its data, and whether closing the server deletes it, which is the default. */
  public InstanceSpecBuilder withDataDirectory(File dataDirectory, boolean deleteDataDirectoryOnClose) {
    this.deleteDataDirectoryOnClose = deleteDataDirectoryOnClose;
    return withDataDirectory(dataDirectory);
  }

  /** The port; 0 takes a free one when the server starts. */
  public InstanceSpecBuilder withPort(int port) {
    this.port = port;
    return this;
  }

  /** Has no effect. */
  public InstanceSpecBuilder withElectionPort(int electionPort) {
    this.electionPort = electionPort;
    return this;
  }

  /** Has no effect. */
  public InstanceSpecBuilder withQuorumPort(int quorumPort) {
    this.quorumPort = quorumPort;
    return this;
  }

  /** Has no effect. */
  public InstanceSpecBuilder withServerId(int serverId) {
    this.serverId = serverId;
    return this;
  }

  /** The unit of session timeouts in milliseconds. */
  public InstanceSpecBuilder withTickTime(int tickTime) {
    this.tickTime = tickTime;
    return this;
  }

  /** The limit of connections from one address; 0 for no limit. */
  public InstanceSpecBuilder withMaxClientCnxns(int maxClientCnxns) {
    this.maxClientCnxns = maxClientCnxns;
    return this;
  }

  /** Lines of a zoo.cfg. */
  public InstanceSpecBuilder withCustomProperties(Map<String, String> customProperties) {
    this.customProperties = new LinkedHashMap<>(customProperties);
    return this;
  }

  /** The address to listen on. */
  public InstanceSpecBuilder withHostname(String hostname) {
    this.hostname = hostname;
    return this;
  }

  /** Returns the spec. */
  public InstanceSpec build() {
    return new InstanceSpec(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId,
        tickTime, maxClientCnxns, customProperties, hostname);
  }
}
