// SPDX-License-Identifier: GPL-2.0
/* A made-up Tegra board on a real kernel: I2C bus with INA3221 registers, cpufreq, devfreq, fan,
 * thermal zones, memory clock. The I2C bus and the fan come from the device tree (device_tree.py),
 * clocks, zones and NVIDIA's own files from parameters (run.py). The kernel's frameworks and its own
 * ina3221 driver make the files that epochwatt reads.
 * Written from knowledge of the kernel's interfaces; nothing of NVIDIA's is in here. */
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/of.h>
#include <linux/i2c.h>
#include <linux/cpufreq.h>
#include <linux/cpu.h>
#include <linux/devfreq.h>
#include <linux/pm_opp.h>
#include <linux/hwmon.h>
#include <linux/thermal.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/swab.h>
#include <linux/math64.h>
#include <linux/bitops.h>

/* ---- planted values: 2 chips x 3 channels ---- */
static int mv[6] = {19800, 19800, 5040, 0, 5040, 0};
module_param_array(mv, int, NULL, 0644);
static int ma[6] = {500, 300, 800, 0, 200, 0};
module_param_array(ma, int, NULL, 0644);
static int shunt_uohm[6] = {2000, 2000, 2000, 2000, 2000, 2000};
module_param_array(shunt_uohm, int, NULL, 0644);
static int square_ms, square_ma;	/* channel 0: ma + square_ma in every second square_ms */
module_param(square_ms, int, 0644);
module_param(square_ma, int, 0644);
static int i2c_us = 100;		/* one transfer at 400 kHz */
module_param(i2c_us, int, 0644);
static int i2c_hang_ms;			/* the next transfer takes so long */
module_param(i2c_hang_ms, int, 0644);
static int i2c_errno;			/* every transfer fails with it */
module_param(i2c_errno, int, 0644);
static unsigned long n_reads;
module_param(n_reads, ulong, 0444);

static u16 regs[2][256];
static s64 filtered_ua[6];		/* what a channel's average has come to */
static u64 filtered_us[2];		/* up to when, of each chip */

static int amps_ma(int n, u64 us)
{
	int v = ma[n];

	if (n == 0 && square_ms && (div_u64(us, square_ms * 1000) & 1))
		v += square_ma;
	return v;
}

/* The chip converts its channels one after the other; with an average of N the register moves by
 * 1/N of the difference at each cycle (TI SBOS576B, 8.4.1). */
static void convert(int chip)
{
	static const int averages[] = {1, 4, 16, 64, 128, 256, 512, 1024};
	static const int times_us[] = {140, 204, 332, 588, 1100, 2116, 4156, 8244};
	u16 config = regs[chip][0];
	int average = averages[config >> 9 & 7], ch;
	u64 now_us = ktime_to_us(ktime_get());
	u32 cycle_us = hweight16(config & 0x7000) * (times_us[config >> 6 & 7] + times_us[config >> 3 & 7]);

	if (!cycle_us)
		return;
	if (average == 1 || now_us - filtered_us[chip] > 20000000) {
		/* the first value, or all of the average is newer than the last reading */
		for (ch = 0; ch < 3; ch++)
			filtered_ua[chip * 3 + ch] = 1000LL * amps_ma(chip * 3 + ch, now_us);
		filtered_us[chip] = now_us;
		return;
	}
	for (; filtered_us[chip] + cycle_us <= now_us; filtered_us[chip] += cycle_us)
		for (ch = 0; ch < 3; ch++) {
			s64 *mean = &filtered_ua[chip * 3 + ch];

			*mean += div_s64(1000LL * amps_ma(chip * 3 + ch, filtered_us[chip]) - *mean, average);
		}
}

static u16 reg_read(int chip, u8 reg)
{
	int ch, n;

	if (reg >= 1 && reg <= 6) {
		ch = (reg - 1) / 2;
		n = chip * 3 + ch;
		if (!(regs[chip][0] & (1 << (14 - ch))))
			return regs[chip][reg];
		if (reg & 1) {	/* shunt voltage, 40 uV a step, left aligned by 3 */
			convert(chip);
			return (u16)((s16)div_s64(div_s64(filtered_ua[n] * shunt_uohm[n], 1000000) + 20, 40) << 3);
		}
		return (u16)((mv[n] / 8) << 3);
	}
	if (reg == 0x0f) {	/* conversion ready; alarms of channels beyond their critical limit */
		u16 flags = regs[chip][reg] | 1;

		for (ch = 0; ch < 3; ch++)
			if ((s16)reg_read(chip, 1 + 2 * ch) > (s16)regs[chip][7 + 2 * ch])
				flags |= 1 << (9 - ch);
		return flags;
	}
	return regs[chip][reg];
}

static s32 vi2c_xfer(struct i2c_adapter *adap, u16 addr, unsigned short flags, char rw, u8 cmd,
		     int size, union i2c_smbus_data *data)
{
	int chip = addr - 0x40;

	if (chip < 0 || chip > 1)
		return -ENXIO;
	if (i2c_hang_ms) {
		int t = i2c_hang_ms;

		i2c_hang_ms = 0;
		msleep(t);
	}
	if (i2c_us)
		usleep_range(i2c_us, i2c_us + 20);
	if (i2c_errno)
		return -i2c_errno;
	if (size == I2C_SMBUS_QUICK)
		return 0;
	if (size != I2C_SMBUS_WORD_DATA)
		return -EOPNOTSUPP;
	if (rw == I2C_SMBUS_READ) {
		data->word = swab16(reg_read(chip, cmd));
		n_reads++;
	} else {
		u16 v = swab16(data->word);

		if (cmd == 0 && (v & 0x8000))
			v = 0x7127;
		regs[chip][cmd] = v;
	}
	return 0;
}

static u32 vi2c_func(struct i2c_adapter *adap)
{
	return I2C_FUNC_SMBUS_QUICK | I2C_FUNC_SMBUS_WORD_DATA;
}

static const struct i2c_algorithm vi2c_algo = { .smbus_xfer = vi2c_xfer, .functionality = vi2c_func };
static struct i2c_adapter vi2c = { .owner = THIS_MODULE, .algo = &vi2c_algo, .name = "vboard i2c", .nr = 1 };

static int vi2c_probe(struct platform_device *pdev)
{
	int c;

	for (c = 0; c < 2; c++) {
		int limit;

		regs[c][0] = 0x7127;
		for (limit = 7; limit <= 12; limit++)
			regs[c][limit] = 0x7ff8;
		regs[c][0xfe] = 0x5449;
		regs[c][0xff] = 0x3220;
	}
	vi2c.dev.parent = &pdev->dev;
	vi2c.dev.of_node = pdev->dev.of_node;
	return i2c_add_numbered_adapter(&vi2c);
}

static int vi2c_remove(struct platform_device *pdev)
{
	i2c_del_adapter(&vi2c);
	return 0;
}

static const struct of_device_id vi2c_match[] = { { .compatible = "epochwatt,vi2c" }, {} };
static struct platform_driver vi2c_driver = {
	.probe = vi2c_probe, .remove = vi2c_remove,
	.driver = { .name = "vi2c", .of_match_table = vi2c_match },
};

/* ---- CPU clocks ---- */
static int cluster = 2;
module_param(cluster, int, 0444);
static unsigned int cpu_khz[64];
static int n_khz;
module_param_array(cpu_khz, uint, &n_khz, 0444);
static struct cpufreq_frequency_table table[65];
static unsigned int cpu_cur[NR_CPUS];

static int vcpu_init(struct cpufreq_policy *policy)
{
	int first = policy->cpu / cluster * cluster, c;

	for (c = first; c < first + cluster && c < nr_cpu_ids; c++)
		if (cpu_possible(c))
			cpumask_set_cpu(c, policy->cpus);
	policy->freq_table = table;
	policy->cpuinfo.transition_latency = 100000;
	if (!cpu_cur[policy->cpu])
		cpu_cur[policy->cpu] = table[0].frequency;
	return 0;
}

static int vcpu_exit(struct cpufreq_policy *policy) { return 0; }

static int vcpu_target(struct cpufreq_policy *policy, unsigned int index)
{
	int c;

	for_each_cpu(c, policy->related_cpus)
		cpu_cur[c] = table[index].frequency;
	return 0;
}

static unsigned int vcpu_get(unsigned int cpu) { return cpu_cur[cpu] ?: table[0].frequency; }

static struct cpufreq_driver vcpu_driver = {
	.name = "vboard-cpufreq", .init = vcpu_init, .exit = vcpu_exit,
	.verify = cpufreq_generic_frequency_table_verify, .target_index = vcpu_target, .get = vcpu_get,
	.attr = cpufreq_generic_attr, .flags = CPUFREQ_HAVE_GOVERNOR_PER_POLICY,
};

/* ---- GPU clock ---- */
static unsigned int gpu_khz[32];
static int n_gpu;
module_param_array(gpu_khz, uint, &n_gpu, 0444);
static int gpu_load;			/* per mille */
module_param(gpu_load, int, 0644);
static unsigned int gpu_stuck_khz;	/* it keeps to this clock, whatever it is set to; 0: it follows */
module_param(gpu_stuck_khz, uint, 0644);
static unsigned long gpu_cur;

static int vgpu_target(struct device *dev, unsigned long *freq, u32 flags)
{
	struct dev_pm_opp *opp = devfreq_recommended_opp(dev, freq, flags);

	if (IS_ERR(opp))
		return PTR_ERR(opp);
	dev_pm_opp_put(opp);
	gpu_cur = *freq;
	return 0;
}

static int vgpu_status(struct device *dev, struct devfreq_dev_status *stat)
{
	stat->current_frequency = gpu_cur;
	stat->total_time = 1000;
	stat->busy_time = gpu_load;
	return 0;
}

static int vgpu_cur_freq(struct device *dev, unsigned long *freq)
{
	*freq = gpu_stuck_khz ? gpu_stuck_khz * 1000UL : gpu_cur;
	return 0;
}

static struct devfreq_dev_profile vgpu_profile = {
	.polling_ms = 100, .target = vgpu_target, .get_dev_status = vgpu_status, .get_cur_freq = vgpu_cur_freq,
};

static ssize_t load_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sprintf(buf, "%d\n", gpu_load);
}
static DEVICE_ATTR_RO(load);
static int railgate = 1, tpc_mask, fbp_mask;	/* masks of a start with all parts on */
static ssize_t railgate_enable_show(struct device *dev, struct device_attribute *a, char *buf)
{
	return sprintf(buf, "%d\n", railgate);
}
static ssize_t railgate_enable_store(struct device *dev, struct device_attribute *a, const char *buf, size_t n)
{
	return kstrtoint(buf, 0, &railgate) ?: n;
}
static DEVICE_ATTR_RW(railgate_enable);
#define MASK(name, value)								\
static ssize_t name##_show(struct device *dev, struct device_attribute *a, char *buf)	\
{											\
	return sprintf(buf, "%d\n", value);						\
}											\
static ssize_t name##_store(struct device *dev, struct device_attribute *a, const char *buf, size_t n) \
{											\
	return kstrtoint(buf, 0, &value) ?: n;						\
}											\
static DEVICE_ATTR_RW(name)
MASK(tpc_pg_mask, tpc_mask);
MASK(fbp_pg_mask, fbp_mask);
static struct attribute *vgpu_attrs[] = {
	&dev_attr_load.attr, &dev_attr_railgate_enable.attr, &dev_attr_tpc_pg_mask.attr,
	&dev_attr_fbp_pg_mask.attr, NULL
};
ATTRIBUTE_GROUPS(vgpu);

/* platform/17000000.gpu, platform/bus@0/17000000.gpu or, as JetPack 5 has it, 17000000.ga10b. Not from
 * the device tree: at that address the tree of QEMU has its PCI window. */
static char *gpu_device;
module_param(gpu_device, charp, 0444);
static char *gpu_links[4];		/* further names of it: gpu.0, platform/gpu.0 */
static int n_gpu_links;
module_param_array(gpu_links, charp, &n_gpu_links, 0444);

static struct device *gpu_made(void)
{
	char *first = strchr(gpu_device, '/'), *last = strrchr(gpu_device, '/');
	struct platform_device_info info = { .id = PLATFORM_DEVID_NONE };
	struct platform_device *device;

	if (!last)
		return root_device_register(gpu_device);
	info.name = last + 1;
	if (first != last) {
		device = platform_device_register_simple(kstrndup(first + 1, last - first - 1, GFP_KERNEL),
							 PLATFORM_DEVID_NONE, NULL, 0);
		if (IS_ERR(device))
			return ERR_CAST(device);
		info.parent = &device->dev;
	}
	device = platform_device_register_full(&info);
	return IS_ERR(device) ? ERR_CAST(device) : &device->dev;
}

static int gpu_init(void)
{
	struct device *dev = gpu_made();
	struct devfreq *df;
	int n, err;

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	for (n = 0; n < n_gpu; n++)
		dev_pm_opp_add(dev, gpu_khz[n] * 1000UL, 800000);
	vgpu_profile.initial_freq = gpu_cur = gpu_khz[0] * 1000UL;
	df = devfreq_add_device(dev, &vgpu_profile, DEVFREQ_GOV_SIMPLE_ONDEMAND, NULL);
	if (IS_ERR(df))
		return PTR_ERR(df);
	err = device_add_groups(dev, vgpu_groups) ?:
		sysfs_create_link(&dev->kobj, &df->dev.kobj, "devfreq_dev");	/* as nvgpu does */
	for (n = 0; n < n_gpu_links && !err; n++) {
		bool is_platform = !strncmp(gpu_links[n], "platform/", 9);

		err = sysfs_create_link(is_platform ? &platform_bus.kobj : platform_bus.kobj.parent,
					&dev->kobj, gpu_links[n] + (is_platform ? 9 : 0));
	}
	return err;
}

/* ---- fan ---- */
static long pwm = 77;
static umode_t fan_visible(const void *d, enum hwmon_sensor_types t, u32 a, int c) { return 0644; }
static int fan_read(struct device *dev, enum hwmon_sensor_types t, u32 a, int c, long *v) { *v = pwm; return 0; }
static int fan_write(struct device *dev, enum hwmon_sensor_types t, u32 a, int c, long v)
{
	if (v < 0 || v > 255)
		return -EINVAL;
	pwm = v;
	return 0;
}
static const struct hwmon_channel_info *fan_info[] = { HWMON_CHANNEL_INFO(pwm, HWMON_PWM_INPUT), NULL };
static const struct hwmon_ops fan_ops = { .is_visible = fan_visible, .read = fan_read, .write = fan_write };
static const struct hwmon_chip_info fan_chip = { .ops = &fan_ops, .info = fan_info };
static int vfan_probe(struct platform_device *pdev)
{
	return PTR_ERR_OR_ZERO(devm_hwmon_device_register_with_info(&pdev->dev, "pwmfan", NULL, &fan_chip, NULL));
}
static const struct of_device_id vfan_match[] = { { .compatible = "epochwatt,fan" }, {} };
static struct platform_driver vfan_driver = {
	.probe = vfan_probe, .driver = { .name = "vfan", .of_match_table = vfan_match },
};

/* ---- thermal zones: those of parts that are off (cv*) answer EAGAIN ---- */
static char *zone_names[16];
static int n_zones;
module_param_array_named(zones, zone_names, charp, &n_zones, 0444);
static int mcelsius = 45000;
module_param(mcelsius, int, 0644);
static int zone_temp(struct thermal_zone_device *tz, int *t)
{
	if (!strncasecmp(zone_names[(long)tz->devdata], "cv", 2))
		return -EAGAIN;
	*t = mcelsius;
	return 0;
}
static struct thermal_zone_device_ops zone_ops = { .get_temp = zone_temp };

static int throttling;			/* state of the cooling device that slows the board down */
module_param(throttling, int, 0644);
static int cool_max(struct thermal_cooling_device *c, unsigned long *state) { *state = 1; return 0; }
static int cool_now(struct thermal_cooling_device *c, unsigned long *state) { *state = throttling; return 0; }
static int cool_set(struct thermal_cooling_device *c, unsigned long state) { throttling = state; return 0; }
static const struct thermal_cooling_device_ops cool_ops = {
	.get_max_state = cool_max, .get_cur_state = cool_now, .set_cur_state = cool_set,
};

/* ---- files that NVIDIA's drivers make, a number in each: below /sys/kernel or /sys/devices/platform ---- */
#define MAX_FILES 16
static char *files[MAX_FILES];		/* such as kernel/nvpmodel_clk_cap/emc */
static int n_files;
module_param_array(files, charp, &n_files, 0444);
static struct { struct kobj_attribute attr; u64 value; } made[MAX_FILES];
static struct { char *path; struct kobject *kobj; } folders[4 * MAX_FILES];
static int n_folders;

static ssize_t made_show(struct kobject *k, struct kobj_attribute *a, char *buf)
{
	return sprintf(buf, "%llu\n", made[((char *)a - (char *)made) / sizeof(made[0])].value);
}

static ssize_t made_store(struct kobject *k, struct kobj_attribute *a, const char *buf, size_t n)
{
	return kstrtou64(buf, 0, &made[((char *)a - (char *)made) / sizeof(made[0])].value) ?: n;
}

/* Return the folder of a path, made where it is not there yet. */
static struct kobject *folder(char *path, size_t length)
{
	char *name = kstrndup(path, length, GFP_KERNEL), *last = strrchr(name, '/');
	int n;

	if (!last)
		return strcmp(name, "kernel") ? &platform_bus.kobj : kernel_kobj;
	for (n = 0; n < n_folders; n++)
		if (!strcmp(folders[n].path, name))
			return folders[n].kobj;
	if (n_folders == ARRAY_SIZE(folders))
		return NULL;
	folders[n_folders].kobj = kobject_create_and_add(last + 1, folder(name, last - name));
	folders[n_folders].path = name;
	return folders[n_folders++].kobj;
}

static void make_file(int n)
{
	char *last = strrchr(files[n], '/');

	made[n].attr.attr.name = last + 1;
	made[n].attr.attr.mode = 0644;
	made[n].attr.show = made_show;
	made[n].attr.store = made_store;
	sysfs_attr_init(&made[n].attr.attr);
	if (sysfs_create_file(folder(files[n], last - files[n]), &made[n].attr.attr))
		pr_err("vboard: %s cannot be made\n", files[n]);
}

/* ---- the memory's clock: simple attributes of debugfs, as those of JetPack 4 ---- */
static struct dentry *dbg;
static u64 emc_rate = 3199000000ULL, emc_min = 204000000ULL, emc_max = 3199000000ULL, emc_locked;

static int __init vboard_init(void)
{
	int n, err;
	struct dentry *d;

	platform_driver_register(&vi2c_driver);
	err = gpu_device ? gpu_init() : 0;
	if (err)
		pr_err("vboard: GPU %d\n", err);
	platform_driver_register(&vfan_driver);
	for (n = 0; n < n_khz; n++) {
		table[n].driver_data = n;
		table[n].frequency = cpu_khz[n];
	}
	table[n_khz].frequency = CPUFREQ_TABLE_END;
	err = n_khz ? cpufreq_register_driver(&vcpu_driver) : 0;
	if (err)
		pr_err("vboard: cpufreq %d\n", err);
	for (n = 0; n < n_zones; n++) {
		struct thermal_zone_device *zone =
			thermal_zone_device_register(zone_names[n], 0, 0, (void *)(long)n, &zone_ops, NULL, 0, 0);

		if (!IS_ERR(zone))
			thermal_zone_device_enable(zone);
	}
	if (IS_ERR(thermal_cooling_device_register("cpu-throttle-alert", NULL, &cool_ops)))
		pr_err("vboard: cooling device\n");
	for (n = 0; n < n_files; n++)
		make_file(n);
	dbg = debugfs_create_dir("bpmp", NULL);
	d = debugfs_create_dir("emc", debugfs_create_dir("clk", debugfs_create_dir("debug", dbg)));
	debugfs_create_u64("rate", 0644, d, &emc_rate);
	debugfs_create_u64("min_rate", 0444, d, &emc_min);
	debugfs_create_u64("max_rate", 0444, d, &emc_max);
	debugfs_create_u64("mrq_rate_locked", 0644, d, &emc_locked);
	return 0;
}
module_init(vboard_init);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("a made-up Tegra board");
