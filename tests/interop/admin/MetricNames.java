import java.util.Map;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.function.BiConsumer;
import org.apache.zookeeper.metrics.Counter;
import org.apache.zookeeper.metrics.CounterSet;
import org.apache.zookeeper.metrics.Gauge;
import org.apache.zookeeper.metrics.GaugeSet;
import org.apache.zookeeper.metrics.MetricsContext;
import org.apache.zookeeper.metrics.Summary;
import org.apache.zookeeper.metrics.SummarySet;
import org.apache.zookeeper.metrics.impl.DefaultMetricsProvider;

/**
 * ZooKeeper's default provider, which also reports the kind of every metric that the server registers: as "kind of NAME"
 * in the answer of AdminServer's command monitor.
 */
public final class MetricNames extends DefaultMetricsProvider {
    private final Map<String, String> kinds = new ConcurrentSkipListMap<>();
    private final MetricsContext context = new Context(super.getRootContext());

    @Override
    public MetricsContext getRootContext() {
        return context;
    }

    @Override
    public void dump(BiConsumer<String, Object> sink) {
        super.dump(sink);
        kinds.forEach((name, kind) -> sink.accept("kind of " + name, kind));
    }

    private final class Context implements MetricsContext {
        private final MetricsContext inner;

        Context(MetricsContext inner) {
            this.inner = inner;
        }

        @Override
        public MetricsContext getContext(String name) {
            return this;
        }

        @Override
        public Counter getCounter(String name) {
            kinds.put(name, "counter");
            return inner.getCounter(name);
        }

        @Override
        public CounterSet getCounterSet(String name) {
            kinds.put(name, "counter with labels");
            return inner.getCounterSet(name);
        }

        @Override
        public void registerGauge(String name, Gauge gauge) {
            kinds.put(name, "gauge");
            inner.registerGauge(name, gauge);
        }

        @Override
        public void unregisterGauge(String name) {
            inner.unregisterGauge(name);
        }

        @Override
        public void registerGaugeSet(String name, GaugeSet gauges) {
            kinds.put(name, "gauge with labels");
            inner.registerGaugeSet(name, gauges);
        }

        @Override
        public void unregisterGaugeSet(String name) {
            inner.unregisterGaugeSet(name);
        }

        @Override
        public Summary getSummary(String name, DetailLevel level) {
            kinds.put(name, level == DetailLevel.BASIC ? "summary" : "summary with quantiles");
            return inner.getSummary(name, level);
        }

        @Override
        public SummarySet getSummarySet(String name, DetailLevel level) {
            kinds.put(name, level == DetailLevel.BASIC ? "summary with labels" : "summary with quantiles and labels");
            return inner.getSummarySet(name, level);
        }
    }
}
