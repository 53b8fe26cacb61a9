package org.apache.curator.test;

import java.io.File;
import java.util.LinkedHashMap;
import java.util.Map;

/** Stands in for Curator's class of the same name, which its newer versions have. */
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

  /** Where its data is; null makes a directory. */
  public InstanceSpecBuilder withDataDirectory(File dataDirectory) {
    this.dataDirectory = dataDirectory;
    return this;
  }

  /** The same, and whether the directory goes with the server; by default it does. */
  public InstanceSpecBuilder withDataDirectory(File dataDirectory, boolean deleteDataDirectoryOnClose) {
    this.deleteDataDirectoryOnClose = deleteDataDirectoryOnClose;
    return withDataDirectory(dataDirectory);
  }

  /** The port; 0 takes a free one when it starts. */
  public InstanceSpecBuilder withPort(int port) {
    this.port = port;
    return this;
  }

  /** Of no meaning here. */
  public InstanceSpecBuilder withElectionPort(int electionPort) {
    this.electionPort = electionPort;
    return this;
  }

  /** Of no meaning here. */
  public InstanceSpecBuilder withQuorumPort(int quorumPort) {
    this.quorumPort = quorumPort;
    return this;
  }

  /** Of no meaning here. */
  public InstanceSpecBuilder withServerId(int serverId) {
    this.serverId = serverId;
    return this;
  }

  /** Unit of session expiry in milliseconds. */
  public InstanceSpecBuilder withTickTime(int tickTime) {
    this.tickTime = tickTime;
    return this;
  }

  /** Most connections from one address; 0 for no limit. */
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

  /** What it is to be like. */
  public InstanceSpec build() {
    return new InstanceSpec(dataDirectory, port, electionPort, quorumPort, deleteDataDirectoryOnClose, serverId,
        tickTime, maxClientCnxns, customProperties, hostname);
  }
}
